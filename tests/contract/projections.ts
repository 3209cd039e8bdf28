import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { delay } from "@std/async";
import { CodecError, InvalidNameError, type StoreEvent } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { soon, until } from "./wait.ts";

/** Projections: each event takes effect once, whatever fails and whoever competes. */
export function projections(harness: Harness): void {
  effects(harness);
  failures(harness);
  batches(harness);
  stopping(harness);
}

function effects(harness: Harness): void {
  testSides(
    harness,
    "stream.process() handles what was there and what comes, in order, and saves the offset",
    async ({ writer, reader, database }) => {
      const stream = writer.stream("orders");
      const offsets = await stream.publishMany(numbers(3));
      const seen: number[] = [];
      reader.stream("orders").process("totals", async (event, tx) => {
        seen.push(event.offset);
        await database.business.insert(tx.connection, `o-${event.payload}`);
      });
      await until(() => seen.length === 3);
      offsets.push(await stream.publish(4));
      offsets.push(await writer.transaction((tx) => tx.publishTx(stream, 5)));
      await until(async () => await stream.getOffset("totals") === offsets[4]);
      assertEquals(seen, offsets);
      assertEquals(await database.business.list(), ["o-1", "o-2", "o-3", "o-4", "o-5"]);
    },
  );

  testDatabase(
    harness,
    "stream.process() of two stores on one consumer has each event take effect once",
    async (database) => {
      const stores = [await database.open(), await database.open()];
      const stream = stores[0]!.stream("orders");
      let calls = 0;
      const handles = stores.map((store, place) =>
        store.stream("orders").process("totals", async (event, tx) => {
          // The second time would insert another id.
          await database.business.insert(tx.connection, `${event.offset}-${++calls}`);
        }, { batch: place === 0 ? 1 : 4 })
      );
      const offsets: number[] = [];
      for (let count = 0; count < 60; count++) offsets.push(await stream.publish(count));
      await until(async () => await stream.getOffset("totals") === offsets.at(-1));
      for (const handle of handles) await handle.stop();
      const effects = (await database.business.list()).map((id) => Number(id.split("-")[0]));
      assertEquals(effects.toSorted((a, b) => a - b), offsets);
    },
  );

  testStore(
    harness,
    "stream.process() lets messages of the handler commit with the offset",
    async (store) => {
      const stream = store.stream("orders");
      const offset = await stream.publish("o-1");
      stream.process("mailing", async (event, tx) => {
        await tx.outboxEnqueueTx("mail", {}, event.payload);
        await tx.publishTx("log", event.payload);
      });
      await until(async () => await stream.getOffset("mailing") === offset);
      assertEquals((await store.outbox("mail").stats()).ready, 1);
      assertEquals((await store.stream("log").readSince(0, 10)).length, 1);
    },
  );

  testStore(
    harness,
    "a handler that writes past its tx is refused with a TypeError, and the event stays",
    async (store) => {
      const stream = store.stream("orders");
      const offset = await stream.publish("o-1");
      let refusal: unknown;
      stream.process("mailing", async (_event, tx) => {
        await store.queue("mail").enqueue("outside").catch((error) => refusal = error);
        await tx.enqueueTx("mail", {}, "inside");
      });
      await until(async () => await stream.getOffset("mailing") === offset);
      assert(refusal instanceof TypeError);
      assertEquals((await store.queue("mail").claimOne("worker"))?.payload, "inside");
      assertEquals(await store.queue("mail").claimOne("worker"), undefined);
    },
  );

  testStore(
    harness,
    "stream.process() goes on behind a gap and reports what was missed",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(3));
      await stream.saveOffset("totals", offsets[0]!);
      await stream.trimTo(offsets[1]!);
      const events: StoreEvent[] = [];
      store.onEvent((event) => events.push(event));
      const seen: number[] = [];
      stream.process("totals", (event) => seen.push(event.offset));
      await until(async () => await stream.getOffset("totals") === offsets[2]);
      assertEquals(seen, [offsets[2]]);
      assert(events.some((event) => event.type === "degraded" && event.reason.includes("totals")));
    },
  );
}

function failures(harness: Harness): void {
  testStore(
    harness,
    "a handler that fails is called again with the same event, undone and reported",
    async (store, { business }) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(2));
      const reported: Error[] = [];
      store.onEvent((event) => event.type === "error" && reported.push(event.error));
      const failure = new Error("the mail server is down");
      const calls: number[] = [];
      stream.process("totals", async (event, tx) => {
        calls.push(event.offset);
        await business.insert(tx.connection, `${event.offset}-${calls.length}`);
        if (calls.length === 1) throw failure;
      });
      await until(async () => await stream.getOffset("totals") === offsets[1]);
      assertEquals(calls, [offsets[0], offsets[0], offsets[1]]);
      assertEquals(await business.list(), [`${offsets[0]}-2`, `${offsets[1]}-3`].toSorted());
      assertEquals(reported, [failure]);
    },
  );

  testStore(
    harness,
    "a handler whose message fails a check can go on, and one that throws takes its messages back",
    async (store) => {
      const stream = store.stream("orders");
      const offset = await stream.publish("o-1");
      let calls = 0;
      stream.process("mailing", async (_event, tx) => {
        calls++;
        await assertRejects(() => tx.enqueueTx("mail", {}, NaN), CodecError);
        await tx.enqueueTx("mail", {}, calls);
        if (calls === 1) throw new Error("the first call fails");
      });
      await until(async () => await stream.getOffset("mailing") === offset);
      const jobs = await store.queue("mail").claimBatch("worker", 10);
      assertEquals(jobs.map((job) => job.payload), [2]);
    },
  );

  testStore(
    harness,
    "a handler whose statement fails is called again, and what it wrote is undone",
    async (store, { business }) => {
      const stream = store.stream("orders");
      const offset = await stream.publish("o-1");
      let calls = 0;
      stream.process("totals", async (_event, tx) => {
        calls++;
        await business.insert(tx.connection, `o-${calls}`);
        // The second insert of an id fails.
        if (calls === 1) await business.insert(tx.connection, "o-1");
      });
      await until(async () => await stream.getOffset("totals") === offset);
      assertEquals(await business.list(), ["o-2"]);
    },
  );

  testStore(
    harness,
    "a handler whose transaction was lost is called again",
    async (store) => {
      const stream = store.stream("orders");
      const offset = await stream.publish("o-1");
      const reported: Error[] = [];
      store.onEvent((event) => event.type === "error" && reported.push(event.error));
      let calls = 0;
      const handle = stream.process("mailing", async (_event, tx) => {
        calls++;
        if (calls === 1) await tx.saveOffsetTx("log", "reader", 0, { from: 7 });
        else await tx.enqueueTx("mail", {}, calls);
      });
      await Promise.race([
        handle.done,
        until(async () => await stream.getOffset("mailing") === offset),
      ]);
      assertEquals((await store.queue("mail").claimOne("worker"))?.payload, 2);
      assert(reported.length > 0);
    },
  );

  testStore(
    harness,
    "a poisoned event is handed to the handler, which may skip it",
    async (store, database) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(3));
      await database.poisonEvent(offsets[1]!, "{not json");
      const seen: unknown[] = [];
      stream.process("totals", (event) => {
        if (event.offset === offsets[1]) assertThrows(() => event.payload, CodecError);
        else seen.push(event.payload);
      });
      await until(async () => await stream.getOffset("totals") === offsets[2]);
      assertEquals(seen, [1, 3]);
    },
  );
}

function batches(harness: Harness): void {
  testStore(
    harness,
    "stream.process() with `batch` undoes a whole batch when one of its events fails",
    async (store, { business }) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(5));
      const calls: number[] = [];
      let before: string[] = [];
      stream.process("totals", async (event, tx) => {
        calls.push(event.payload as number);
        if (calls.length === 4) before = await business.list();
        await business.insert(tx.connection, `o-${event.payload}`);
        if (calls.length === 3) throw new Error("the third fails once");
      }, { batch: 5 });
      await until(async () => await stream.getOffset("totals") === offsets[4]);
      assertEquals(calls, [1, 2, 3, 1, 2, 3, 4, 5]);
      assertEquals(before, []);
      assertEquals(await business.list(), ["o-1", "o-2", "o-3", "o-4", "o-5"]);
    },
  );

  testStore(
    harness,
    "stream.process() puts no more than `batch` events into one transaction",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(7));
      const saved: number[] = [];
      stream.process("totals", async () => {
        saved.push(await stream.getOffset("totals"));
      }, { batch: 3 });
      await until(async () => await stream.getOffset("totals") === offsets[6]);
      const [third, sixth] = [offsets[2]!, offsets[5]!];
      assertEquals(saved, [0, 0, 0, third, third, third, sixth]);
    },
  );

  testStore(
    harness,
    "stream.process() without `batch` commits each event by itself",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(3));
      const saved: number[] = [];
      stream.process("totals", async () => {
        saved.push(await stream.getOffset("totals"));
      });
      await until(async () => await stream.getOffset("totals") === offsets[2]);
      assertEquals(saved, [0, offsets[0], offsets[1]]);
    },
  );

  testStore(
    harness,
    "stream.process() refuses what it cannot run with, at once",
    (store) => {
      const stream = store.stream("orders");
      const handler = () => {};
      assertThrows(() => stream.process("totals", handler, { batch: 0 }), RangeError, "batch");
      assertThrows(() => stream.process("totals", handler, { batch: 1.5 }), RangeError, "batch");
      assertThrows(
        () => stream.process("totals", handler, { size: 1 } as never),
        TypeError,
        "size",
      );
      assertThrows(() => stream.process("totals", "handler" as never), TypeError, "handler");
      assertThrows(() => stream.process("", handler), InvalidNameError);
      return Promise.resolve();
    },
  );
}

function stopping(harness: Harness): void {
  testStore(
    harness,
    "handle.stop() waits for the running handler, whose event is saved, and handles no other",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(2));
      const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const seen: number[] = [];
      const handle = stream.process("totals", async (event) => {
        seen.push(event.offset);
        started.resolve();
        await gate.promise;
      });
      await soon(started.promise);
      let isStopped = false;
      const stopped = handle.stop().then(() => isStopped = true);
      assertEquals(await stream.getOffset("totals"), 0);
      assertEquals(isStopped, false);
      gate.resolve();
      await soon(stopped);
      await soon(handle.done);
      assertEquals(await stream.getOffset("totals"), offsets[0]);
      // Somebody else takes over where it ended.
      const next = Promise.withResolvers<number>();
      stream.process("totals", (event) => next.resolve(event.offset));
      assertEquals(await soon(next.promise), offsets[1]);
      assertEquals(seen, [offsets[0]]);
    },
  );

  testStore(
    harness,
    "handle.stop() undoes a handler that does not end in time",
    async (store, { business }) => {
      const stream = store.stream("orders");
      await stream.publish(1);
      const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const handle = stream.process("totals", async (_event, tx) => {
        await business.insert(tx.connection, "o-1");
        started.resolve();
        await gate.promise;
      });
      await soon(started.promise);
      await soon(handle.stop({ drain: 20 }));
      gate.resolve();
      await soon(handle.done);
      assertEquals(await business.list(), []);
      assertEquals(await stream.getOffset("totals"), 0);
    },
  );

  // Where one transaction keeps every other write waiting, a projection can be made to wait for its turn.
  if (!harness.traits.concurrentTransactions) {
    testStore(
      harness,
      "handle.stop() starts no handler after it has resolved",
      async (store, database) => {
        const stream = store.stream("orders");
        await stream.publish(1);
        const foreign = await database.beginForeign();
        let calls = 0;
        const handle = stream.process("totals", () => calls++);
        // It has read the event and waits for its turn to write.
        await delay(50);
        await soon(handle.stop({ drain: 10 }));
        await foreign.close();
        await soon(handle.done);
        assertEquals(calls, 0);
        assertEquals(await stream.getOffset("totals"), 0);
      },
    );
  }

  for (const end of ["its signal", "its disposal", "store.close()"]) {
    testStore(
      harness,
      `a projection that waits is ended by ${end}`,
      async (store, database) => {
        const other = await database.open();
        const controller = new AbortController();
        const seen: number[] = [];
        const handle = other.stream("orders").process(
          "totals",
          (event) => seen.push(event.offset),
          { signal: controller.signal },
        );
        const first = await store.stream("orders").publish(1);
        await until(async () => await store.stream("orders").getOffset("totals") === first);
        if (end === "its signal") controller.abort();
        if (end === "its disposal") await handle[Symbol.asyncDispose]();
        if (end === "store.close()") await other.close();
        await soon(handle.done);
        const second = await store.stream("orders").publish(2);
        const next = Promise.withResolvers<number>();
        store.stream("orders").process("totals", (event) => next.resolve(event.offset));
        assertEquals(await soon(next.promise), second);
        assertEquals(seen, [first]);
      },
    );
  }
}

function numbers(count: number): { payload: number }[] {
  return Array.from({ length: count }, (_, place) => ({ payload: place + 1 }));
}
