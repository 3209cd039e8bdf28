import { assertEquals } from "@std/assert";
import type { JoinedTx, Lock, Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { openScene, type Scene } from "./mistakes.ts";
import { assertRefuses, assertWritesNothing, fromJavaScript } from "./refusals.ts";

/** A call in a transaction of one store, and the scene of another. */
type Use = (tx: JoinedTx, other: Scene) => Promise<unknown>;

/** What belongs to another store on the same database. */
const OF_ANOTHER_STORE: Readonly<Record<string, readonly [says: string, use: Use]>> = {
  "tx.enqueueTx() refuses a queue": [
    'Cannot enqueue to queue "jobs"',
    (tx, { queue }) => tx.enqueueTx(queue, {}, 1),
  ],
  "tx.enqueueManyTx() refuses a queue": [
    'Cannot enqueue to queue "jobs"',
    (tx, { queue }) => tx.enqueueManyTx(queue, {}, [1]),
  ],
  "tx.cancelTx() refuses a queue": [
    'Cannot cancel a job of queue "jobs"',
    (tx, { queue, job }) => tx.cancelTx(queue, job.id),
  ],
  "tx.outboxEnqueueTx() refuses an outbox": [
    'Cannot enqueue to outbox "mail"',
    (tx, { outbox }) => tx.outboxEnqueueTx(outbox, {}, 1),
  ],
  "tx.publishTx() refuses a stream": [
    'Cannot publish to stream "orders"',
    (tx, { stream }) => tx.publishTx(stream, 1),
  ],
  "tx.publishWithKeyTx() refuses a stream": [
    'Cannot publish to stream "orders"',
    (tx, { stream }) => tx.publishWithKeyTx(stream, "key", 1),
  ],
  "tx.publishManyTx() refuses a stream": [
    'Cannot publish to stream "orders"',
    (tx, { stream }) => tx.publishManyTx(stream, [{ payload: 1 }]),
  ],
  "tx.saveOffsetTx() refuses a stream": [
    'Cannot save an offset of stream "orders"',
    (tx, { stream }) => tx.saveOffsetTx(stream, "billing", 1),
  ],
  "tx.ackTx() refuses a job": ["Cannot ack job", (tx, { job }) => tx.ackTx(job)],
  "tx.retryTx() refuses a job": ["Cannot retry job", (tx, { job }) => tx.retryTx(job)],
  "tx.failTx() refuses a job": ["Cannot fail job", (tx, { job }) => tx.failTx(job)],
  "tx.assertLockTx() refuses a lock": [
    "Cannot assert lock",
    (tx, { lock }) => tx.assertLockTx(lock),
  ],
};

/** What is a handle, but not of the kind that is asked for. */
const OF_ANOTHER_KIND: Readonly<Record<string, Use>> = {
  "tx.enqueueTx() refuses a stream": (tx, { stream }) =>
    tx.enqueueTx(fromJavaScript(stream), {}, 1),
  "tx.enqueueTx() refuses an outbox": (tx, { outbox }) =>
    tx.enqueueTx(fromJavaScript(outbox), {}, 1),
  "tx.enqueueManyTx() refuses an outbox": (tx, { outbox }) =>
    tx.enqueueManyTx(fromJavaScript(outbox), {}, [1]),
  "tx.cancelTx() refuses an outbox": (tx, { outbox }) => tx.cancelTx(fromJavaScript(outbox), 1),
  "tx.outboxEnqueueTx() refuses a queue": (tx, { queue }) =>
    tx.outboxEnqueueTx(fromJavaScript(queue), {}, 1),
  "tx.publishTx() refuses a queue": (tx, { queue }) => tx.publishTx(fromJavaScript(queue), 1),
  "tx.saveOffsetTx() refuses a receiver": (tx, { events }) =>
    tx.saveOffsetTx(fromJavaScript(events), "billing", 0),
  "tx.notifyTx() refuses a stream": (tx, { stream }) => tx.notifyTx(fromJavaScript(stream)),
  "tx.ackTx() refuses a snapshot": async (tx, { queue, job }) =>
    await tx.ackTx(fromJavaScript(await queue.getJob(job.id))),
  "tx.ackTx() refuses a copy of a job": (tx, { job }) =>
    tx.ackTx({ ...job, id: job.id, queue: job.queue }),
  "tx.assertLockTx() refuses a copy of a lock": (tx, { lock }) => tx.assertLockTx(copyOf(lock)),
};

/** Handles are of one store, jobs of one queue: another's is a mistake, never a lost race. */
export function foreignHandles(harness: Harness): void {
  for (const [call, [says, use]] of Object.entries(OF_ANOTHER_STORE)) {
    testStore(harness, `${call} of another store`, async (store, database) => {
      const other = await openScene(await database.open());
      await assertWritesNothing(database, async () => {
        const tx = await store.beginTx();
        const expected = { error: TypeError, says, names: ["another store"] };
        await assertRefuses(() => use(tx, other), expected, call);
        await tx.commit();
      });
      await assertUsableAfter(store, (tx) => use(tx, other));
      await assertUntouched(other);
    });
  }

  for (const [call, use] of Object.entries(OF_ANOTHER_KIND)) {
    testStore(harness, call, async (store, database) => {
      const scene = await openScene(store);
      await assertWritesNothing(database, async () => {
        const tx = await store.beginTx();
        await assertRefuses(() => use(tx, scene), { error: TypeError, says: "Cannot" }, call);
        await tx.commit();
      });
      await assertUsableAfter(store, (tx) => use(tx, scene));
      await assertUntouched(scene);
    });
  }

  testStore(
    harness,
    "queue.ackBatch() refuses a job of another queue or store",
    async (store, database) => {
      const own = await openScene(store);
      const other = await openScene(await database.open(), "other lock");
      const mail = store.queue("more jobs");
      await mail.enqueue(1);
      const job = await mail.claimOne("worker");
      const names = ["another queue or store"];
      const expected = { error: TypeError, says: 'Cannot ack jobs of queue "jobs"', names };
      for (const foreign of [job!, other.job]) {
        const call = () => own.queue.ackBatch([own.job, foreign]);
        await assertRefuses(call, expected, `job ${foreign.id}`);
        assertEquals((await own.queue.getJob(own.job.id))?.state, "claimed");
      }
      assertEquals(await job?.ack(), true);
      await assertUntouched(other);
    },
  );

  testStore(harness, "every handle of a queue takes the jobs of the others", async (store) => {
    await store.queue("jobs").enqueueMany([1, 2]);
    const [first, second] = await store.queue("jobs").claimBatch("worker", 2);
    assertEquals(await store.queue("jobs").ackBatch([first!]), [first!.id]);
    const landed = await store.transaction((tx) => tx.ackTx(second!));
    assertEquals(landed, true);
  });

  testStore(harness, "every *Tx call takes the handle in place of the name", async (store) => {
    const { queue, stream, outbox, job, lock, worker, projection } = await openScene(store);
    await store.transaction(async (tx) => {
      const [id] = await tx.enqueueManyTx(queue, {}, [1]);
      assertEquals(await tx.cancelTx(queue, id!), true);
      await tx.enqueueTx(queue, {}, 2);
      await tx.outboxEnqueueTx(outbox, {}, 3);
      const offset = await tx.publishTx(stream, 4);
      await tx.publishWithKeyTx(stream, "key", 5);
      await tx.publishManyTx(stream, [{ payload: 6 }]);
      assertEquals(await tx.saveOffsetTx(stream, "billing", offset), true);
      assertEquals(await tx.ackTx(job), true);
      assertEquals(await tx.assertLockTx(lock), true);
    });
    assertEquals((await queue.claimBatch("worker", 10)).map((job) => job.payload), [2]);
    assertEquals((await outbox.stats()).ready, 2);
    const rest = await stream.readFromConsumer("billing", 10);
    assertEquals(rest.map((event) => event.payload), [5, 6]);
    await worker.stop();
    await projection.stop();
  });
}

/** A refused call leaves the transaction as good as new. */
async function assertUsableAfter(
  store: Store<unknown>,
  use: (tx: JoinedTx) => Promise<unknown>,
): Promise<void> {
  const tx = await store.beginTx();
  await assertRefuses(() => use(tx), { error: TypeError, says: "Cannot" }, "the mistake");
  const id = await tx.enqueueTx("after", {}, "good");
  await tx.commit();
  assertEquals((await store.queue("after").getJob(id))?.payload, "good");
}

async function assertUntouched({ job, lock, queue, worker, projection }: Scene): Promise<void> {
  assertEquals((await queue.getJob(job.id))?.state, "claimed");
  assertEquals(await job.ack(), true);
  assertEquals(await lock.release(), true);
  await worker.stop();
  await projection.stop();
}

/** Looks like the lock, but nobody took it. */
function copyOf(lock: Lock): Lock {
  return {
    name: lock.name,
    owner: lock.owner,
    token: lock.token,
    expiresAt: lock.expiresAt,
    renew: (ttl) => lock.renew(ttl),
    release: () => lock.release(),
    [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose](),
  };
}
