import { assertEquals, assertRejects } from "@std/assert";
import { ClosedError, type Job, type JoinedTx } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { abortReason, claim, LONG, passed, SHORT } from "./queue_jobs.ts";

/** What a transaction can do to a claimed job, and where the job stands afterwards. */
const ENDINGS: readonly [
  name: string,
  call: (tx: JoinedTx, job: Job<number>) => Promise<boolean>,
  state: string | undefined,
][] = [
  ["ackTx", (tx, job) => tx.ackTx(job), undefined],
  ["retryTx", (tx, job) => tx.retryTx(job, { delay: LONG }), "scheduled"],
  ["failTx", (tx, job) => tx.failTx(job, "broken"), "dead"],
];

/** What a claim is worth before, in and after a transaction that ends it. */
export function queueTx(harness: Harness): void {
  for (const [name, call, state] of ENDINGS) {
    testStore(harness, `tx.${name}() ends the claim when it commits`, async (store) => {
      const queue = store.queue<number>("q");
      await queue.enqueue(1);
      const job = await claim(queue);
      const tx = await store.beginTx();
      assertEquals(await call(tx, job), true);
      assertEquals((await queue.getJob(job.id))?.state, "claimed");
      await tx.commit();
      assertEquals((await queue.getJob(job.id))?.state, state);
      assertEquals(
        [await job.ack(), await job.heartbeat(), await job.release()],
        Array(3).fill(false),
      );
      assertEquals((await queue.getJob(job.id))?.state, state);
    });

    testStore(harness, `tx.${name}() leaves the claim when it is rolled back`, async (store) => {
      const queue = store.queue<number>("q");
      await queue.enqueue(1);
      const job = await claim(queue);
      const before = await queue.getJob(job.id);
      const tx = await store.beginTx();
      assertEquals(await call(tx, job), true);
      await tx.rollback();
      assertEquals(await queue.getJob(job.id), before);
      assertEquals(await job.heartbeat(), true);
      assertEquals(await job.ack(), true);
    });

    testStore(harness, `tx.${name}() of a lapsed claim changes nothing`, async (store) => {
      const queue = store.queue<number>("q", { visibility: SHORT });
      await queue.enqueue(1);
      const job = await claim(queue);
      await passed(SHORT);
      const before = await queue.getJob(job.id);
      const tx = await store.beginTx();
      assertEquals(await call(tx, job), false);
      await assertRejects(() => tx.commit(), ClosedError);
      assertEquals(await queue.getJob(job.id), before);
    });

    testStore(harness, `tx.${name}() silences the signal when it commits`, async (store) => {
      const queue = store.queue<number>("q", { visibility: 3 * SHORT });
      await queue.enqueueMany([1, 2]);
      const [job, clock] = [await claim(queue), await claim(queue)];
      const { signal } = job;
      await store.transaction((tx) => call(tx, job));
      await abortReason(clock.signal);
      assertEquals(signal.aborted, false);
    });

    testStore(
      harness,
      `tx.${name}() that is rolled back leaves the signal alive`,
      async (store) => {
        const queue = store.queue<number>("q", { visibility: 2 * SHORT });
        await queue.enqueue(1);
        const job = await claim(queue);
        const { signal } = job;
        const tx = await store.beginTx();
        await call(tx, job);
        await tx.rollback();
        assertEquals((await abortReason(signal)).reason, "lease-lost");
      },
    );
  }

  testStore(
    harness,
    "tx.retryTx() on the last attempt sends the job to the dead",
    async (store) => {
      const queue = store.queue<number>("q", { maxAttempts: 1 });
      await queue.enqueue(1);
      const job = await claim(queue);
      await store.transaction((tx) => tx.retryTx(job, { error: "broken" }));
      const dead = await queue.getJob(job.id);
      assertEquals([dead?.reason, dead?.lastError], ["exhausted", "broken"]);
    },
  );

  testDatabase(
    harness,
    "jobs of an uncommitted transaction cannot be claimed",
    async (database) => {
      const [store, other] = [await database.open(), await database.open()];
      const tx = await store.beginTx();
      const id = await tx.enqueueTx("q", {}, 1);
      assertEquals(await other.queue("q").getJob(id), undefined);
      assertEquals((await other.queue("q").stats()).ready, 0);
      await tx.commit();
      assertEquals((await claim(other.queue("q"))).id, id);
    },
  );

  testDatabase(harness, "jobs of a rolled-back transaction never existed", async (database) => {
    const [store, other] = [await database.open(), await database.open()];
    const tx = await store.beginTx();
    await tx.enqueueManyTx("q", {}, [1, 2]);
    await tx.rollback();
    assertEquals(await other.queue("q").claimBatch("worker", 10), []);
  });
}
