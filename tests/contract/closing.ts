import { assert, assertEquals, assertExists, assertInstanceOf, assertRejects } from "@std/assert";
import { ClosedError, DatabaseError, type Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { claimed, rejectionOf } from "./tx_calls.ts";
import { soon, until } from "./wait.ts";

/** `store.close()`, from every state. */
export function closing(harness: Harness): void {
  testStore(harness, "store.close() can be called again, also at the same time", async (store) => {
    await soon(Promise.all([store.close(), store.close(), store[Symbol.asyncDispose]()]));
    await soon(store.close(), "another close");
    await soon(Promise.resolve(store[Symbol.asyncDispose]()), "the dispose");
  });

  testStore(
    harness,
    "store.close() rejects options it cannot use, and closes nothing",
    async (store) => {
      for (const drain of [-1, NaN]) {
        await assertRejects(() => store.close({ drain }), RangeError, "drain");
      }
      for (const options of [{ drain: "1 s" }, { patience: 1 }, 5, null] as object[]) {
        await assertRejects(() => store.close(options), TypeError);
      }
      await store.notify("news");
    },
  );

  testStore(harness, "every call of a closed store is a ClosedError", async (store) => {
    const calls = await everyCall(store);
    await store.close();
    for (const [name, call] of Object.entries(calls)) {
      const outcome = await soon(Promise.resolve().then(call), name)
        .then((value) => value, (error) => error);
      assertInstanceOf(outcome, ClosedError, `${name} gave ${outcome}`);
    }
  });

  testStore(harness, "store.status() of a closed store says so", async (store) => {
    await store.close();
    assertEquals((await store.status()).state, "closed");
  });

  testStore(harness, "store.close() rolls back an open transaction", async (store, database) => {
    const before = await database.countRows();
    const tx = await store.beginTx();
    await database.business.insert(tx.connection, "o-1");
    await tx.enqueueTx("mail", {}, "hello");
    await soon(store.close(), "the close");
    await assertRejects(() => tx.enqueueTx("mail", {}, "late"), ClosedError);
    await assertRejects(() => tx.commit(), ClosedError);
    assertEquals(await database.business.list(), []);
    assertEquals(await database.countRows(), before);
  });

  testStore(
    harness,
    "store.close() rolls back the transaction of a running work",
    async (store, database) => {
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      const transaction = store.transaction(async (tx) => {
        await database.business.insert(tx.connection, "o-1");
        begin();
        await mayEnd;
      }, { retries: 3 });
      await begun;
      const closed = store.close();
      const rejection = rejectionOf(transaction);
      await soon(closed, "the close");
      end();
      assertInstanceOf(await soon(rejection, "the rejection"), ClosedError);
      assertEquals(await database.business.list(), []);
    },
  );

  testStore(harness, "store.close() ends waiting receivers", async (store) => {
    const wakes = await store.listen("news");
    const events = await store.stream("orders").subscribe("billing");
    const waiting = [wakes.recv(), wakes.recv(), events.recv(), events.recv()];
    const timed = rejectionOf(wakes.recvTimeout(60_000));
    const loops = [collect(wakes), collect(events)];
    await soon(store.close(), "the close");
    assertEquals(await soon<unknown[]>(Promise.all(waiting)), [
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    assertInstanceOf(await soon(timed, "the end of recvTimeout()"), ClosedError);
    assertEquals(await soon(Promise.all(loops), "the end of the loops"), [0, 0]);
    assertEquals([await wakes.recv(), await events.recv()], [undefined, undefined]);
    await wakes.close();
    await events[Symbol.asyncDispose]();
  });

  testStore(harness, "store.close() ends calls that wait for a turn", async (store, database) => {
    const tx = await store.beginTx();
    await database.business.insert(tx.connection, "o-1");
    const waiting: Promise<unknown>[] = [
      store.beginTx().then((late) => late.rollback()),
      store.transaction((late) => database.business.insert(late.connection, "o-2")),
      store.queue("mail").enqueue("hello"),
      store.stream("orders").publish("placed"),
      store.queue("mail").claimOne("w-1"),
    ];
    const outcomes = Promise.allSettled(waiting);
    await soon(store.close(), "the close");
    const [, work, enqueued] = await soon(outcomes, "the waiting calls");
    for (const outcome of await outcomes) {
      if (outcome.status === "fulfilled") continue;
      assert(outcome.reason instanceof ClosedError || outcome.reason instanceof DatabaseError);
    }
    // Who was told that it is there finds it there, and nobody else does.
    const { ready } = await (await database.open()).queue("mail").stats();
    if (enqueued?.status !== "fulfilled") assertEquals(ready, 0);
    assertEquals(
      await database.business.list(),
      work?.status === "fulfilled" ? ["o-2"] : [],
    );
  });

  testStore(
    harness,
    "store.close() waits for writes that have begun, or refuses them",
    async (store, database) => {
      const writes = Array.from({ length: 20 }, (_, n) => store.queue("mail").enqueue(n));
      const outcomes = Promise.allSettled(writes);
      await soon(store.close(), "the close");
      const queue = (await database.open()).queue("mail");
      for (const outcome of await soon(outcomes, "the writes")) {
        if (outcome.status === "fulfilled") assertExists(await queue.getJob(outcome.value));
        else assertInstanceOf(outcome.reason, ClosedError);
      }
      const landed = (await outcomes).filter(({ status }) => status === "fulfilled").length;
      assertEquals((await queue.stats()).ready, landed);
    },
  );

  testStore(
    harness,
    "store.close({ drain }) lets a running handler end and acks its job",
    async (store, database) => {
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      const worker = store.queue("mail").work(async () => {
        begin();
        await mayEnd;
        await store.stream("orders").publish("while closing");
      });
      const id = await store.queue("mail").enqueue("hello");
      await soon(begun, "the handler");
      const closed = store.close({ drain: 60_000 });
      end();
      await soon(closed, "the close");
      await worker.done;
      const other = await database.open();
      assertEquals(await other.queue("mail").getJob(id), undefined);
      assertEquals((await other.stream("orders").readSince(0, 9)).length, 1);
    },
  );

  testStore(
    harness,
    "store.close({ drain }) gives back the job of a handler that does not end",
    async (store, database) => {
      const { promise: begun, resolve: begin } = Promise.withResolvers<AbortSignal>();
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      store.queue("mail").work(async (job) => {
        begin(job.signal);
        await mayEnd;
      });
      const id = await store.queue("mail", { maxAttempts: 1 }).enqueue("hello");
      const signal = await soon(begun, "the handler");
      await soon(store.close({ drain: 10 }), "the close");
      assert(signal.aborted);
      const queue = (await database.open()).queue("mail");
      assertEquals((await queue.getJob(id))?.attempts, 0);
      assertEquals((await queue.claimOne("w-2"))?.attempt, 1);
      end();
    },
  );

  testStore(harness, "store.close() ends workers and projections that wait", async (store) => {
    const loops = [
      store.queue("mail").work(() => {}, { concurrency: 3 }),
      store.queue("mail").work(() => {}, { tx: true }),
      store.outbox("mail").run(() => {}),
      store.stream("orders").process("billing", () => {}),
    ];
    await store.queue("mail").enqueue("hello");
    await soon(store.close(), "the close");
    await soon(Promise.all(loops.map((loop) => loop.done)), "the end of the loops");
    for (const loop of loops) await loop.stop();
  });

  testStore(
    harness,
    "store.close() rolls back a projection that does not end",
    async (store, database) => {
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      store.stream("orders").process("billing", async (_event, tx) => {
        await database.business.insert(tx.connection, "o-1");
        begin();
        await mayEnd;
      });
      await store.stream("orders").publish("placed");
      await soon(begun, "the handler");
      await soon(store.close({ drain: 10 }), "the close");
      end();
      assertEquals(await database.business.list(), []);
      assertEquals(await (await database.open()).stream("orders").getOffset("billing"), 0);
    },
  );

  testStore(harness, "store.close() may be called by a handler", async (store, database) => {
    const { promise: closed, resolve, reject } = Promise.withResolvers<void>();
    store.queue("mail").work(async () => {
      await store.close({ drain: 10 }).then(resolve, reject);
    });
    const id = await store.queue("mail").enqueue("hello");
    await soon(closed, "the close");
    const snapshot = await (await database.open()).queue("mail").getJob(id);
    assertEquals([snapshot?.state, snapshot?.attempts], ["ready", 0]);
  });

  testStore(
    harness,
    "store.close() may be called by the work of a transaction",
    async (store, database) => {
      const transaction = store.transaction(async (tx) => {
        await database.business.insert(tx.connection, "o-1");
        await store.close();
      });
      await assertRejects(() => soon(transaction), ClosedError);
      assertEquals(await database.business.list(), []);
    },
  );

  testStore(harness, "store.close() after store.drain() closes", async (store) => {
    const drained = store.drain();
    await soon(store.close(), "the close");
    await soon(drained, "the drain");
    await assertRejects(() => store.drain(), ClosedError);
  });

  testStore(
    harness,
    "store.close() leaves a claim to lapse, and other stores their work",
    async (store, database) => {
      const { job } = await claimed(store, 100);
      const other = await database.open();
      const { promise: done, resolve } = Promise.withResolvers<number>();
      const worker = other.queue("mail").work((taken) => resolve(taken.id));
      await soon(store.close(), "the close");
      assertEquals(await soon(done, "the other worker"), job.id);
      await worker.stop();
      await until(async () => await other.queue("mail").getJob(job.id) === undefined, "the ack");
    },
  );
}

async function collect(items: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of items) count++;
  return count;
}

/** Every call of a store and of what it gave out, ready to be made. */
async function everyCall(store: Store<unknown>): Promise<Record<string, () => unknown>> {
  const [queue, stream, outbox] = [
    store.queue("mail"),
    store.stream("orders"),
    store.outbox("mail"),
  ];
  const { job } = await claimed(store);
  const lock = await store.tryLock("report", "host-1", 60_000);
  assertExists(lock);
  const receiver = await stream.subscribe("billing");
  const wakes = await store.listen("news");
  const tx = await store.beginTx();
  return {
    "store.notify": () => store.notify("news"),
    "store.listen": () => store.listen("news"),
    "store.stream": () => store.stream("orders"),
    "store.queue": () => store.queue("mail"),
    "store.outbox": () => store.outbox("mail"),
    "store.tryLock": () => store.tryLock("report", "host-1", 60_000),
    "store.beginTx": () => store.beginTx(),
    "store.transaction": () => store.transaction(() => {}),
    "store.joinTx": () => store.joinTx({}),
    "store.drain": () => store.drain(),
    "queue.enqueue": () => queue.enqueue(1),
    "queue.enqueueMany": () => queue.enqueueMany([1]),
    "queue.enqueueMany of none": () => queue.enqueueMany([]),
    "queue.claimOne": () => queue.claimOne("w-1"),
    "queue.claimBatch": () => queue.claimBatch("w-1", 2),
    "queue.ackBatch": () => queue.ackBatch([job]),
    "queue.cancel": () => queue.cancel(1),
    "queue.getJob": () => queue.getJob(1),
    "queue.sweepExpired": () => queue.sweepExpired(),
    "queue.work": () => queue.work(() => {}),
    "queue.stats": () => queue.stats(),
    "queue.deadJobs": () => queue.deadJobs(),
    "queue.requeue": () => queue.requeue(1),
    "queue.purgeDead": () => queue.purgeDead(),
    "job.ack": () => job.ack(),
    "job.retry": () => job.retry(),
    "job.fail": () => job.fail(),
    "job.heartbeat": () => job.heartbeat(),
    "job.release": () => job.release(),
    "stream.publish": () => stream.publish(1),
    "stream.publishWithKey": () => stream.publishWithKey("k", 1),
    "stream.publishMany": () => stream.publishMany([{ payload: 1 }]),
    "stream.readSince": () => stream.readSince(0, 1),
    "stream.readFromConsumer": () => stream.readFromConsumer("billing", 1),
    "stream.saveOffset": () => stream.saveOffset("billing", 0),
    "stream.getOffset": () => stream.getOffset("billing"),
    "stream.subscribe": () => stream.subscribe("billing"),
    "stream.trimTo": () => stream.trimTo(0),
    "stream.process": () => stream.process("billing", () => {}),
    "stream.info": () => stream.info(),
    "stream.resetOffset": () => stream.resetOffset("billing", 0),
    "stream.dropConsumer": () => stream.dropConsumer("billing"),
    "receiver.tryRecv": () => receiver.tryRecv(),
    "receiver.readSince": () => receiver.readSince(0, 1),
    "receiver.saveOffset": () => receiver.saveOffset(),
    "wakes.tryRecv": () => wakes.tryRecv(),
    "wakes.recvTimeout": () => wakes.recvTimeout(1_000),
    "lock.renew": () => lock.renew(60_000),
    "lock.release": () => lock.release(),
    "outbox.enqueue": () => outbox.enqueue(1),
    "outbox.runOnce": () => outbox.runOnce("w-1", () => {}),
    "outbox.run": () => outbox.run(() => {}),
    "outbox.getJob": () => outbox.getJob(1),
    "outbox.cancel": () => outbox.cancel(1),
    "outbox.stats": () => outbox.stats(),
    "outbox.deadJobs": () => outbox.deadJobs(),
    "outbox.requeue": () => outbox.requeue(1),
    "outbox.purgeDead": () => outbox.purgeDead(),
    "outbox.sweepExpired": () => outbox.sweepExpired(),
    "tx.enqueueTx": () => tx.enqueueTx("mail", {}, 1),
    "tx.commit": () => tx.commit(),
    "tx.rollback": () => tx.rollback(),
    "tx.connection": () => tx.connection,
  };
}
