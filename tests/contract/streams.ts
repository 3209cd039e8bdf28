import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { delay } from "@std/async";
import { CodecError, InvalidNameError, type Json, type StreamEvent } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { soon } from "./wait.ts";

/** Streams: what is published, read, trimmed, and in which order. */
export function streams(harness: Harness): void {
  publishing(harness);
  reading(harness);
  order(harness);
  trimming(harness);
}

function publishing(harness: Harness): void {
  testStore(
    harness,
    "stream.publish() gives ascending offsets, exact numbers",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = [
        await stream.publish({ n: 1 }),
        await stream.publishWithKey("o-1", { n: 2 }),
        ...await stream.publishMany([{ payload: { n: 3 } }, { key: "o-2", payload: { n: 4 } }]),
        await store.transaction((tx) => tx.publishTx(stream, { n: 5 })),
        await store.transaction((tx) => tx.publishWithKeyTx("orders", "o-3", { n: 6 })),
        ...await store.transaction((tx) => tx.publishManyTx(stream, [{ payload: { n: 7 } }])),
      ];
      assert(offsets.every((offset) => Number.isSafeInteger(offset) && offset > 0));
      assertEquals(offsets, [...new Set(offsets)].toSorted((a, b) => a - b));
      const events = await stream.readSince(0, 100);
      assertEquals(events.map(({ offset }) => offset), offsets);
      assertEquals(
        events.map(({ key, payload }) => [key, payload]),
        [undefined, "o-1", undefined, "o-2", undefined, "o-3", undefined].map((key, place) => [
          key,
          { n: place + 1 },
        ]),
      );
    },
  );

  testStore(
    harness,
    "stream.publish() keeps a payload as it was sent",
    async (store) => {
      const stream = store.stream("orders");
      const payloads: Json[] = [null, 0, -1.5, "", "\u0000", [], {}, false, { b: 1, a: [null] }];
      for (const payload of payloads) await stream.publish(payload);
      const read = await stream.readSince(0, 100);
      assertEquals(read.map((event) => event.payload), payloads);
      assertEquals(Object.keys(read.at(-1)!.payloadAs<Record<string, Json>>()), ["b", "a"]);
    },
  );

  testStore(
    harness,
    "a published event is there for every store and after all of them were closed",
    async (store, database) => {
      const other = await database.open();
      const offset = await store.stream("orders").publish("kept");
      assertEquals(offsetsOf(await other.stream("orders").readSince(0, 10)), [offset]);
      await store.close();
      await other.close();
      const later = await database.open();
      assertEquals(offsetsOf(await later.stream("orders").readSince(0, 10)), [offset]);
    },
  );

  testStore(
    harness,
    "stream.publishMany() publishes all or nothing",
    async (store, database) => {
      const stream = store.stream("orders");
      assertEquals(await stream.publishMany([]), []);
      const rows = await database.countRows();
      const error = await assertRejects(
        () => stream.publishMany([{ payload: 1 }, { payload: [1, NaN] }]),
        CodecError,
      );
      assertEquals(error.path, "$[1]");
      await assertRejects(
        () => stream.publishMany([{ payload: 1 }, { key: "", payload: 2 }]),
        InvalidNameError,
      );
      assertEquals(await database.countRows(), rows);
    },
  );

  testStore(
    harness,
    "an empty key is an InvalidNameError on both paths, and the tx stays usable",
    async (store) => {
      const stream = store.stream("orders");
      await assertRejects(() => stream.publishWithKey("", 1), InvalidNameError);
      const tx = await store.beginTx();
      await assertRejects(() => tx.publishWithKeyTx("orders", "", 1), InvalidNameError);
      await assertRejects(() => tx.publishManyTx(stream, [{ key: "", payload: 1 }]));
      const offset = await tx.publishWithKeyTx("orders", "__alkstore_key", 1);
      await tx.commit();
      assertEquals(offsetsOf(await stream.readSince(0, 10)), [offset]);
    },
  );

  testStore(
    harness,
    "tx.publishTx() is seen by nobody before the commit and never after a rollback",
    async (store, database) => {
      const other = (await database.open()).stream("orders");
      const stream = store.stream("orders");
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      const offset = await tx.publishTx(stream, "o-1");
      assertEquals(await other.readSince(0, 10), []);
      assertEquals(await stream.readSince(0, 10), []);
      assertEquals((await other.info()).head, 0);
      await tx.commit();
      assertEquals(offsetsOf(await other.readSince(0, 10)), [offset]);
      const dropped = await store.beginTx();
      await database.business.insert(dropped.connection, "o-2");
      await dropped.publishTx(stream, "o-2");
      await dropped.rollback();
      assertEquals(offsetsOf(await stream.readSince(0, 10)), [offset]);
      assertEquals(await database.business.list(), ["o-1"]);
    },
  );
}

function reading(harness: Harness): void {
  testStore(
    harness,
    "stream.readSince() gives the events above an offset, ascending, up to the limit",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany([..."abcde"].map((payload) => ({ payload })));
      assertEquals(offsetsOf(await stream.readSince(0, 3)), offsets.slice(0, 3));
      assertEquals(offsetsOf(await stream.readSince(offsets[2]!, 3)), offsets.slice(3));
      assertEquals(await stream.readSince(offsets[4]!, 3), []);
      assertEquals(await stream.readSince(Number.MAX_SAFE_INTEGER, 3), []);
    },
  );

  testStore(
    harness,
    "stream.readSince() refuses an offset or a limit that is none",
    async (store) => {
      const stream = store.stream("orders");
      for (const offset of [-1, 1.5, NaN, Infinity, 2 ** 53]) {
        await assertRejects(() => stream.readSince(offset, 1), RangeError, "offset");
      }
      for (const limit of [0, -1, 1.5, NaN]) {
        await assertRejects(() => stream.readSince(0, limit), RangeError, "limit");
        await assertRejects(() => stream.readFromConsumer("a", limit), RangeError, "limit");
      }
      await assertRejects(() => stream.readSince("0" as never, 1), TypeError, "offset");
      await assertRejects(() => stream.readFromConsumer("", 1), InvalidNameError);
    },
  );

  testStore(
    harness,
    "an event knows its stream, key, payload and time",
    async (store) => {
      const before = Date.now();
      const stream = store.stream<{ id: string }>("orders");
      const offset = await stream.publishWithKey("o-1", { id: "o-1" });
      const [event] = await stream.readSince(0, 1);
      assertEquals(event!.offset, offset);
      assertEquals(event!.stream, "orders");
      assertEquals(event!.key, "o-1");
      assertEquals(event!.payload, { id: "o-1" });
      assertEquals(event!.payloadAs<{ id: string }>().id, "o-1");
      assert(event!.createdAt instanceof Date);
      // The database's clock may be another machine's.
      assert(Math.abs(event!.createdAt.getTime() - before) < 60_000);
    },
  );

  testStore(
    harness,
    "a stream has its own events only, whatever its name and key",
    async (store) => {
      const names = ["orders", "Orders", "orders ", "or%", "日本語", 'a"b', "x".repeat(1_000)];
      for (const name of names) await store.stream(name).publishWithKey("orders", name);
      for (const name of names) {
        const events = await store.stream(name).readSince(0, 100);
        assertEquals(events.map((event) => event.payload), [name]);
        assertEquals(events[0]!.stream, name);
      }
    },
  );

  testStore(
    harness,
    "a poisoned event costs only itself",
    async (store, database) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany([..."abc"].map((payload) => ({ payload })));
      await database.poisonEvent(offsets[1]!, "{not json");
      const [first, second, third] = await stream.readSince(0, 10);
      assertEquals([first!.payload, third!.payload], ["a", "c"]);
      assertThrows(() => second!.payload, CodecError);
      assertThrows(() => second!.payloadAs(), CodecError);
      assertEquals(second!.offset, offsets[1]);
    },
  );
}

function order(harness: Harness): void {
  testDatabase(
    harness,
    "a reader does not pass an event that commits later",
    async (database) => {
      const [left, right] = [await database.open(), await database.open()];
      const stream = left.stream("orders");
      const held = await left.beginTx();
      await database.business.insert(held.connection, "o-1");
      await held.publishTx("orders", "held");
      // It waits for the first one, or its event stays above it.
      const later = right.transaction((tx) => tx.publishTx("orders", "later"));
      await Promise.race([later, delay(50)]);
      const seen = await stream.readSince(0, 10);
      await held.commit();
      await soon(later);
      const rest = await stream.readSince(seen.at(-1)?.offset ?? 0, 10);
      assertEquals([...seen, ...rest].map((event) => event.payload).toSorted(), ["held", "later"]);
    },
  );

  testDatabase(
    harness,
    "a reader sees each committed event once, ascending, among 20 writers that hold and roll back",
    async (database) => {
      const stores = [await database.open(), await database.open()];
      const committed: number[] = [];
      const writers = Array.from({ length: 20 }, async (_, writer) => {
        for (let turn = 0; turn < 10; turn++) {
          const tx = await stores[(writer + turn) % 2]!.beginTx();
          if (Math.random() < 0.5) {
            await database.business.insert(tx.connection, `${writer}-${turn}`);
          }
          const offset = await tx.publishTx("orders", [writer, turn]);
          await delay(Math.random() * 3);
          await (Math.random() < 0.25 ? tx.rollback() : tx.commit().then(() => {
            committed.push(offset);
          }));
        }
      });
      let isWriting = true;
      const done = Promise.all(writers).finally(() => isWriting = false);
      const seen: number[] = [];
      const stream = stores[0]!.stream("orders");
      while (true) {
        const mayBeLast = !isWriting;
        const page = await stream.readSince(seen.at(-1) ?? 0, 7);
        seen.push(...offsetsOf(page));
        if ((mayBeLast && page.length === 0) || seen.length > 200) break;
        await delay(1);
      }
      await soon(done, "the end of the writers");
      assertEquals(seen, committed.toSorted((a, b) => a - b));
    },
  );
}

function trimming(harness: Harness): void {
  testStore(
    harness,
    "stream.trimTo() deletes all events up to and including an offset, of this stream only",
    async (store) => {
      const [stream, other] = [store.stream("orders"), store.stream("other")];
      const offsets: number[] = [];
      for (const payload of "abcd") {
        offsets.push(await stream.publish(payload));
        await other.publish(payload);
      }
      assertEquals(await stream.trimTo(0), 0);
      assertEquals(await stream.trimTo(offsets[1]!), 2);
      assertEquals(await stream.trimTo(offsets[1]!), 0);
      assertEquals(offsetsOf(await stream.readSince(0, 10)), offsets.slice(2));
      assertEquals((await other.readSince(0, 10)).length, 4);
      await assertRejects(() => stream.trimTo(1.5), RangeError, "offset");
    },
  );

  testStore(
    harness,
    "stream.trimTo() deletes more events than one batch, whoever still needs them",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(
        Array.from({ length: 2_500 }, (_, payload) => ({ payload })),
      );
      await stream.saveOffset("billing", offsets[9]!);
      assertEquals(await stream.trimTo(offsets[2_399]!), 2_400);
      const left = await stream.readFromConsumer("billing", 1_000);
      assertEquals(offsetsOf(left), offsets.slice(2_400));
    },
  );

  testStore(
    harness,
    "offsets go on after everything was trimmed and the store was opened again",
    async (store, database) => {
      const stream = store.stream("orders");
      const [, last] = await stream.publishMany([{ payload: 1 }, { payload: 2 }]);
      assertEquals(await stream.trimTo(last!), 2);
      assertEquals(await stream.info(), { head: last!, first: undefined, consumers: [] });
      await store.close();
      const again = (await database.open()).stream("orders");
      assertEquals((await again.info()).head, last);
      assert(await again.saveOffset("billing", last!));
      assert(await again.publish(3) > last!);
    },
  );

  testStore(
    harness,
    "stream.trimTo() above the head trims what is there and nothing that comes later",
    async (store) => {
      const stream = store.stream("orders");
      const head = await stream.publish(1);
      await stream.saveOffset("billing", head);
      assertEquals(await stream.trimTo(Number.MAX_SAFE_INTEGER), 1);
      assertEquals((await stream.info()).head, head);
      await assertRejects(() => stream.saveOffset("billing", head + 1_000), RangeError);
      const receiver = await stream.subscribe("billing");
      // It had processed all that was trimmed.
      assertEquals(receiver.missed, undefined);
      const next = await stream.publish(2);
      assertEquals((await soon(receiver.recv()))?.offset, next);
      assertEquals(receiver.missed, undefined);
    },
  );

  testStore(
    harness,
    "the newest ten events stay when the rest is trimmed, with rolled-back ones in between",
    async (store) => {
      const stream = store.stream("orders");
      const offsets: number[] = [];
      for (let round = 0; round < 20; round++) {
        const tx = await store.beginTx();
        await tx.publishManyTx(stream, [{ payload: "dropped" }, { payload: "dropped" }]);
        await tx.rollback();
        const events = Array.from({ length: 5 }, (_, n) => ({ payload: round * 5 + n }));
        offsets.push(...await stream.publishMany(events));
      }
      assert(await stream.saveOffset("behind", offsets[49]!));
      assertEquals(await stream.trimTo(offsets.at(-11)!), 90);
      const newest = await stream.readSince(0, 1_000);
      assertEquals(newest.map((event) => event.payload), [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
      assertEquals((await stream.info()).first, offsets.at(-10));
      const receiver = await stream.subscribe("behind");
      assertEquals(receiver.missed, { from: offsets[49]! + 1, to: offsets.at(-11)! });
      assertEquals((await soon(receiver.recv()))?.offset, offsets.at(-10));
    },
  );
}

function offsetsOf(events: readonly StreamEvent<unknown>[]): number[] {
  return events.map((event) => event.offset);
}
