import {
  assert,
  assertEquals,
  assertExists,
  assertInstanceOf,
  assertMatch,
  assertObjectMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { ClosedError, JobAbortError, type Store, type StoreEvent } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claimed, lapsed } from "./tx_calls.ts";
import { soon, until } from "./wait.ts";

/** Draining, what a store reports, and opening it often. */
export function lifecycle(harness: Harness): void {
  testStore(harness, "store.drain() claims nothing more", async (store) => {
    const queue = store.queue("mail");
    const outbox = store.outbox("mail");
    await queue.enqueue("hello");
    await outbox.enqueue("hello");
    await soon(store.drain(), "the drain");
    assertEquals(await queue.claimOne("w-1"), undefined);
    assertEquals(await queue.claimBatch("w-1", 10), []);
    assertEquals(await outbox.runOnce("w-1", () => assert(false)), false);
    assertEquals((await queue.stats()).ready, 1);
    assertEquals((await outbox.stats()).ready, 1);
    assertEquals((await store.status()).state, "draining");
  });

  testStore(
    harness,
    "everything but claiming works after store.drain()",
    async (store, database) => {
      const { queue, job } = await claimed(store);
      await store.drain();
      const receiver = await store.listen("news");
      await store.notify("news");
      assertEquals(await soon(receiver.recv(), "the wake"), { channel: "news" });
      assertEquals(await job.heartbeat(), true);
      assertEquals(await job.ack(), true);
      const id = await queue.enqueue("hello");
      assertEquals(await queue.cancel(id), true);
      const offset = await store.stream("orders").publish("placed");
      const events = await store.stream("orders").subscribe("billing");
      assertEquals((await soon(events.recv(), "the event"))?.offset, offset);
      assertEquals(await events.saveOffset(), true);
      const lock = await store.tryLock("report", "host-1", 60_000);
      assertEquals(await lock?.release(), true);
      await store.transaction(async (tx) => {
        await database.business.insert(tx.connection, "o-1");
        await tx.enqueueTx("mail", {}, "hello");
      });
      assertEquals(await database.business.list(), ["o-1"]);
      assertEquals((await queue.stats()).ready, 1);
    },
  );

  testStore(
    harness,
    "store.drain() resolves when running handlers have ended, and keeps their work",
    async (store) => {
      const queue = store.queue("mail");
      const order: string[] = [];
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      queue.work(async () => {
        begin();
        await mayEnd;
        order.push("handler");
      });
      const first = await queue.enqueue("first");
      await soon(begun, "the handler");
      const drained = store.drain().then(() => order.push("drained"));
      const second = await queue.enqueue("second");
      end();
      await soon(drained, "the drain");
      assertEquals(order, ["handler", "drained"]);
      assertEquals(await queue.getJob(first), undefined);
      assertEquals((await queue.getJob(second))?.state, "ready");
      await soon(store.drain(), "the second drain");
    },
  );

  testStore(
    harness,
    "a handler may write while the store drains, but claims nothing",
    async (store, database) => {
      const { promise: done, resolve } = Promise.withResolvers<unknown[]>();
      let drained: Promise<void> | undefined;
      store.queue("mail").work(async () => {
        drained = store.drain();
        await store.queue("other").enqueue("hello");
        await store.stream("orders").publish("placed");
        await store.notify("news");
        await store.transaction(async (tx) => {
          await database.business.insert(tx.connection, "o-1");
          await tx.outboxEnqueueTx("mail", {}, "hello");
        });
        resolve([await store.queue("other").claimOne("w-1")]);
      });
      const id = await store.queue("mail").enqueue("hello");
      assertEquals(await soon(done, "the handler"), [undefined]);
      await soon(drained ?? Promise.reject(new Error("no drain")), "the drain");
      assertEquals(await store.queue("mail").getJob(id), undefined);
      assertEquals((await store.queue("other").stats()).ready, 1);
      assertEquals((await store.outbox("mail").stats()).ready, 1);
      assertEquals((await store.stream("orders").readSince(0, 9)).length, 1);
      assertEquals(await database.business.list(), ["o-1"]);
    },
  );

  testStore(harness, "store.drain() ends a projection after the event at hand", async (store) => {
    const orders = store.stream("orders");
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    orders.process("billing", async () => {
      begin();
      await mayEnd;
    });
    const [first] = await orders.publishMany([{ payload: 1 }, { payload: 2 }]);
    await soon(begun, "the handler");
    const drained = store.drain();
    end();
    await soon(drained, "the drain");
    assertEquals(await orders.getOffset("billing"), first);
  });

  testStore(harness, "store.status() tells the state of the store", async (store) => {
    const status = await store.status();
    assertMatch(status.engine, /^(sqlite|postgres)$/);
    assert(status.driver.length > 0);
    assert(Number.isInteger(status.schemaVersion) && status.schemaVersion >= 1);
    assertObjectMatch(status, {
      wake: "push",
      wakeReason: undefined,
      healthy: true,
      state: "open",
      workers: 0,
      transactions: [],
    });
    assertEquals(typeof status.details, "object");
  });

  testStore(harness, "store.status() says why wakes are polled for", async (store) => {
    const status = await store.status();
    assertEquals(status.wake, "poll");
    assert((status.wakeReason ?? "").length > 0);
  }, { push: false, poll: { min: 5, max: 20 } });

  testStore(
    harness,
    "store.status() counts workers and projections while they run",
    async (store) => {
      const loops = [
        store.queue("mail").work(() => {}),
        store.outbox("mail").run(() => {}),
        store.stream("orders").process("billing", () => {}),
      ];
      assertEquals((await store.status()).workers, 3);
      for (const loop of loops) await loop.stop();
      assertEquals((await store.status()).workers, 0);
    },
  );

  testStore(
    harness,
    "store.status() lists open transactions with the place that opened them",
    async (store) => {
      const before = Date.now();
      const tx = await store.beginTx();
      const [open] = (await store.status()).transactions;
      assertExists(open);
      assertStringIncludes(open.origin, "lifecycle.ts");
      assert(open.openedAt.getTime() >= before && open.openedAt.getTime() <= Date.now());
      await tx.commit();
      assertEquals((await store.status()).transactions, []);
    },
  );

  testStore(harness, "onEvent() hears how jobs fare", async (store) => {
    const heard: StoreEvent[] = [];
    store.onEvent((event) => heard.push(event));
    const queue = store.queue("mail", { maxAttempts: 2 });
    const id = await queue.enqueue("hello");
    await (await queue.claimOne("w-1"))?.retry({ delay: 0, error: new Error("busy") });
    await (await queue.claimOne("w-1"))?.retry();
    const acked = await queue.enqueue("hello");
    await (await queue.claimOne("w-2"))?.ack();
    const about = { queue: "mail", id };
    assertEquals(heard.map(({ type }) => type), [
      "claimed",
      "retried",
      "claimed",
      "dead",
      "claimed",
      "acked",
    ]);
    assertObjectMatch(heard[0]!, { queue: "mail", ids: [id], worker: "w-1" });
    assertObjectMatch(heard[1]!, { ...about, delay: 0 });
    assertMatch(String(Reflect.get(heard[1]!, "error")), /busy/);
    assertObjectMatch(heard[3]!, about);
    assertObjectMatch(heard[5]!, { queue: "mail", ids: [acked] });
  });

  testStore(harness, "onEvent() hears of a lost lease", async (store) => {
    const heard: StoreEvent[] = [];
    store.onEvent((event) => heard.push(event));
    const { job } = await lapsed(store);
    assertEquals(await job.ack(), false);
    assertObjectMatch(heard.at(-1)!, { type: "lease-lost", queue: "mail", id: job.id });
  });

  testStore(
    harness,
    "onEvent() hears of a job that was finished in a tx once that commits",
    async (store) => {
      const heard: string[] = [];
      const { job } = await claimed(store);
      store.onEvent((event) => heard.push(event.type));
      const undone = await store.beginTx();
      await undone.ackTx(job);
      await undone.rollback();
      assertEquals(heard, []);
      const tx = await store.beginTx();
      await tx.ackTx(job);
      assertEquals(heard, []);
      await tx.commit();
      assertEquals(heard, ["acked"]);
    },
  );

  testStore(harness, "onEvent() hears of a background fault, which ends nothing", async (store) => {
    const { promise: failed, resolve: fail } = Promise.withResolvers<Error>();
    const { promise: done, resolve } = Promise.withResolvers<number>();
    store.onEvent((event) => event.type === "error" && fail(event.error));
    let runs = 0;
    const projection = store.stream("orders").process("billing", (event) => {
      if (++runs === 1) throw new Error("not yet");
      resolve(event.offset);
    });
    const offset = await store.stream("orders").publish("placed");
    assertEquals((await soon(failed, "the error event")).message, "not yet");
    assertEquals(await soon(done, "the second run"), offset);
    await projection.stop();
  });

  testStore(
    harness,
    "a listener of onEvent() that throws disturbs neither the store nor the others",
    async (store) => {
      const heard: string[] = [];
      store.onEvent(() => {
        throw new Error("the log is full");
      });
      const unlisten = store.onEvent((event) => heard.push(event.type));
      const { job } = await claimed(store);
      assertEquals(await job.ack(), true);
      assertEquals(heard, ["claimed", "acked"]);
      unlisten();
      unlisten();
      await claimed(store);
      assertEquals(heard, ["claimed", "acked"]);
      assertThrows(() => store.onEvent(undefined as never), TypeError);
    },
  );

  testStore(harness, "the signal of a job tells a shutdown by its type", async (store) => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<AbortSignal>();
    store.queue("mail").work((job) => {
      begin(job.signal);
      return new Promise((resolve) =>
        job.signal.addEventListener("abort", resolve, { once: true })
      );
    });
    await store.queue("mail").enqueue("hello");
    const signal = await soon(begun, "the handler");
    await soon(store.close({ drain: 0 }), "the close");
    assertInstanceOf(signal.reason, JobAbortError);
    assertEquals(signal.reason.reason, "shutdown");
  });

  testDatabase(
    harness,
    "a store that is opened and closed often leaves nothing behind",
    async (database) => {
      for (let n = 0; n < 100; n++) {
        const store = await database.open({ sweepInterval: 1 });
        if (n % 10 === 0) await busy(store);
        await store.close();
      }
      assertEquals((await (await database.open()).queue("mail").stats()).ready, 10);
    },
  );

  testDatabase(harness, "a store finds what an earlier one has left", async (database) => {
    const first = await database.open();
    const id = await first.queue("mail").enqueue({ to: "a" });
    const offset = await first.stream("orders").publish("placed");
    await first.stream("orders").saveOffset("billing", offset);
    await first.close();
    const second = await database.open();
    assertEquals((await second.queue("mail").getJob(id))?.payload, { to: "a" });
    assertEquals(await second.stream("orders").getOffset("billing"), offset);
    assert(await second.stream("orders").publish("more") > offset);
  });

  testDatabase(harness, "two stores on one database close independently", async (database) => {
    const [first, second] = [await database.open(), await database.open()];
    const receiver = await second.listen("news");
    await first.close();
    await assertRejects(() => first.notify("news"), ClosedError);
    await second.notify("news");
    assertEquals(await soon(receiver.recv(), "the wake"), { channel: "news" });
    await until(async () => (await second.status()).healthy);
  });
}

/** Uses a store a little, and leaves a receiver open. */
async function busy(store: Store<unknown>): Promise<void> {
  const receiver = await store.listen("news");
  await store.queue("mail").enqueue("hello");
  await store.notify("news");
  await soon(receiver.recv(), "the wake");
}
