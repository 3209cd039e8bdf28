import { assert, assertEquals, assertRejects } from "@std/assert";
import { ClosedError, InvalidNameError } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { soon } from "./wait.ts";

/** The offsets consumers save: forward only, alone or with a transaction. */
export function streamOffsets(harness: Harness): void {
  saving(harness);
  savingInTransactions(harness);
  administration(harness);
}

function saving(harness: Harness): void {
  testStore(
    harness,
    "stream.saveOffset() moves a consumer forward, never back, and says whether it moved",
    async (store, database) => {
      const stream = store.stream("orders");
      const [first, second, third] = await stream.publishMany(events(3));
      assertEquals(await stream.getOffset("billing"), 0);
      assertEquals(await stream.saveOffset("billing", 0), false);
      assertEquals(await stream.saveOffset("billing", second!), true);
      assertEquals(await stream.saveOffset("billing", second!), false);
      assertEquals(await stream.saveOffset("billing", first!), false);
      assertEquals(await stream.getOffset("billing"), second);
      const other = (await database.open()).stream("orders");
      assertEquals(await other.getOffset("billing"), second);
      assertEquals((await other.readFromConsumer("billing", 10)).map((e) => e.offset), [third]);
    },
  );

  testStore(
    harness,
    "consumers and streams have their offsets apart, whatever their names",
    async (store) => {
      const consumers = ["billing", "Billing", "__alkstore_x", "日本語", 'a"b', "x".repeat(1_000)];
      const streams = ["orders", "Orders"].map((name) => store.stream(name));
      const saved: number[] = [];
      for (const stream of streams) {
        for (const consumer of consumers) {
          const offset = await stream.publish(consumer);
          assert(await stream.saveOffset(consumer, offset));
          saved.push(offset);
        }
      }
      const read: number[] = [];
      for (const stream of streams) {
        for (const consumer of consumers) read.push(await stream.getOffset(consumer));
      }
      assertEquals(read, saved);
    },
  );

  testStore(
    harness,
    "an offset above the highest one ever drawn is a RangeError on both paths and moves nothing",
    async (store) => {
      const stream = store.stream("orders");
      const head = await stream.publish(1);
      await assertRejects(() => stream.saveOffset("billing", head + 1), RangeError, `${head + 1}`);
      await assertRejects(() => stream.resetOffset("billing", head + 1), RangeError);
      await assertRejects(() => store.stream("nothing").saveOffset("billing", 1_000), RangeError);
      const tx = await store.beginTx();
      await assertRejects(() => tx.saveOffsetTx("orders", "billing", head + 1), RangeError);
      await assertRejects(
        () => tx.saveOffsetTx("orders", "billing", head + 1, { from: 0 }),
        RangeError,
      );
      assertEquals(await tx.saveOffsetTx("orders", "billing", head), true);
      await tx.commit();
      assertEquals(await stream.getOffset("billing"), head);
    },
  );

  testStore(
    harness,
    "an offset or consumer that is none is refused on both paths, and the tx stays usable",
    async (store, database) => {
      const stream = store.stream("orders");
      const head = await stream.publish(1);
      const rows = await database.countRows();
      const tx = await store.beginTx();
      const calls = [
        (consumer: string, offset: number) => stream.saveOffset(consumer, offset),
        (consumer: string, offset: number) => stream.resetOffset(consumer, offset),
        (consumer: string, offset: number) => tx.saveOffsetTx(stream, consumer, offset),
      ];
      for (const call of calls) {
        for (const offset of [-1, 0.5, NaN, Infinity]) {
          await assertRejects(() => call("billing", offset), RangeError, "offset");
        }
        await assertRejects(() => call("billing", "1" as never), TypeError, "offset");
        await assertRejects(() => call("", head), InvalidNameError);
        await assertRejects(() => call(7 as never, head), TypeError, "consumer");
      }
      await assertRejects(
        () => tx.saveOffsetTx(stream, "billing", head, { form: 0 } as never),
        TypeError,
        "form",
      );
      await tx.commit();
      assertEquals(await database.countRows(), rows);
    },
  );
}

function savingInTransactions(harness: Harness): void {
  testStore(
    harness,
    "tx.saveOffsetTx() moves the consumer with the commit and not with a rollback",
    async (store, { business }) => {
      const stream = store.stream("orders");
      const [first, second] = await stream.publishMany(events(2));
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      assertEquals(await tx.saveOffsetTx(stream, "billing", first!), true);
      assertEquals(await stream.getOffset("billing"), 0);
      await tx.commit();
      assertEquals(await stream.getOffset("billing"), first);
      const dropped = await store.beginTx();
      await business.insert(dropped.connection, "o-2");
      assertEquals(await dropped.saveOffsetTx("orders", "billing", second!), true);
      await dropped.rollback();
      assertEquals(await stream.getOffset("billing"), first);
      assertEquals(await business.list(), ["o-1"]);
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx() without `from` says false when it would move back, and the tx goes on",
    async (store, { business }) => {
      const stream = store.stream("orders");
      const [first, second] = await stream.publishMany(events(2));
      await stream.saveOffset("billing", second!);
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      assertEquals(await tx.saveOffsetTx(stream, "billing", first!), false);
      await tx.commit();
      assertEquals(await stream.getOffset("billing"), second);
      assertEquals(await business.list(), ["o-1"]);
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx() lands when the saved offset is `from`, 0 for none",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(events(3));
      let from = 0;
      for (const offset of offsets) {
        const landed = await store.transaction((tx) =>
          tx.saveOffsetTx(stream, "billing", offset, { from })
        );
        assertEquals(landed, true);
        assertEquals(await stream.getOffset("billing"), offset);
        from = offset;
      }
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx() with another `from` than the saved offset loses the transaction",
    async (store, { business }) => {
      const stream = store.stream("orders");
      const [first, second, third] = await stream.publishMany(events(3));
      await stream.saveOffset("billing", second!);
      for (const from of [0, first!, third!]) {
        const tx = await store.beginTx();
        await business.insert(tx.connection, "o-1");
        assertEquals(await tx.saveOffsetTx(stream, "billing", third!, { from }), false);
        await assertRejects(() => tx.publishTx(stream, 4), ClosedError);
        await assertRejects(() => tx.commit(), ClosedError);
      }
      assertEquals(await stream.getOffset("billing"), second);
      assertEquals(await business.list(), []);
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx() that did not land leaves the transaction usable when told to ignore it",
    async (store, { business }) => {
      const stream = store.stream("orders");
      const [first, second] = await stream.publishMany(events(2));
      await stream.saveOffset("billing", first!);
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      const options = { from: 0, ifLost: "ignore" } as const;
      assertEquals(await tx.saveOffsetTx(stream, "billing", second!, options), false);
      await tx.commit();
      assertEquals(await stream.getOffset("billing"), first);
      assertEquals(await business.list(), ["o-1"]);
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx() takes an offset drawn in the same transaction",
    async (store) => {
      const stream = store.stream("orders");
      const offset = await store.transaction(async (tx) => {
        const drawn = await tx.publishTx(stream, 1);
        await tx.saveOffsetTx(stream, "billing", drawn, { from: 0 });
        return drawn;
      });
      assertEquals(await stream.getOffset("billing"), offset);
    },
  );

  testDatabase(
    harness,
    "two processors of one consumer have each event take effect once, with `from`",
    async (database) => {
      const stores = [await database.open(), await database.open()];
      await stores[0]!.stream("orders").publishMany(events(40));
      const workers = stores.map(async (store, number) => {
        const stream = store.stream("orders");
        for (let turn = 0; turn < 200; turn++) {
          const from = await stream.getOffset("billing");
          const [event] = await stream.readSince(from, 1);
          if (event === undefined) return;
          const tx = await store.beginTx();
          await database.business.insert(tx.connection, `${event.offset}-${number}-${from}`);
          if (await tx.saveOffsetTx(stream, "billing", event.offset, { from })) await tx.commit();
          else await assertRejects(() => tx.commit(), ClosedError);
        }
      });
      await soon(Promise.all(workers), "the end of the workers");
      const effects = (await database.business.list()).map((id) => id.split("-")[0]);
      assertEquals(effects.length, 40);
      assertEquals(new Set(effects).size, 40);
    },
  );
}

function administration(harness: Harness): void {
  testStore(
    harness,
    "stream.resetOffset() is the one way back",
    async (store) => {
      const stream = store.stream("orders");
      const [first, second, third] = await stream.publishMany(events(3));
      await stream.saveOffset("billing", third!);
      await stream.resetOffset("billing", first!);
      assertEquals(await stream.getOffset("billing"), first);
      assertEquals((await stream.readFromConsumer("billing", 1))[0]?.offset, second);
      await stream.resetOffset("billing", 0);
      assertEquals(await stream.getOffset("billing"), 0);
      await stream.resetOffset("newcomer", second!);
      assertEquals(await stream.getOffset("newcomer"), second);
    },
  );

  testStore(
    harness,
    "stream.dropConsumer() forgets a consumer of this stream and says whether there was one",
    async (store) => {
      const [stream, other] = [store.stream("orders"), store.stream("other")];
      const offset = await stream.publish(1);
      await stream.saveOffset("billing", offset);
      await stream.saveOffset("mail", offset);
      await other.saveOffset("billing", await other.publish(1));
      assertEquals(await stream.dropConsumer("billing"), true);
      assertEquals(await stream.dropConsumer("billing"), false);
      assertEquals(await stream.getOffset("billing"), 0);
      assertEquals((await stream.info()).consumers.map(({ name }) => name), ["mail"]);
      assert(await other.getOffset("billing") > 0);
    },
  );

  testStore(
    harness,
    "stream.info() tells head, first offset and how many events each consumer has before it",
    async (store) => {
      const [stream, other] = [store.stream("orders"), store.stream("other")];
      assertEquals(await stream.info(), { head: 0, first: undefined, consumers: [] });
      const offsets: number[] = [];
      for (const payload of [1, 2, 3, 4, 5]) {
        // Gaps are not events.
        await other.publish(payload);
        offsets.push(await stream.publish(payload));
      }
      await stream.saveOffset("all", offsets[4]!);
      await stream.saveOffset("some", offsets[2]!);
      await stream.saveOffset("few", offsets[0]!);
      await stream.trimTo(offsets[1]!);
      const { head, first, consumers } = await stream.info();
      assertEquals([head, first], [offsets[4]!, offsets[2]!]);
      assertEquals(
        consumers.toSorted((a, b) => a.lag - b.lag),
        [
          { name: "all", offset: offsets[4]!, lag: 0 },
          { name: "some", offset: offsets[2]!, lag: 2 },
          { name: "few", offset: offsets[0]!, lag: 3 },
        ],
      );
    },
  );
}

function events(count: number): { payload: number }[] {
  return Array.from({ length: count }, (_, place) => ({ payload: place + 1 }));
}
