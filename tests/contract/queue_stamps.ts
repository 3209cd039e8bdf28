import { assertEquals, assertExists } from "@std/assert";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claim, eventsOf, LONG, ofType, passed, SHORT } from "./queue_jobs.ts";

/** What a job has when nobody said otherwise. */
const DEFAULTS = {
  priority: 0,
  visibility: 60_000,
  maxAttempts: 5,
  backoff: { kind: "exponential", base: 5_000, cap: 3_600_000, jitter: 0.1 },
  expiresAt: undefined,
} as const;

/** Settings of a queue, all different from the defaults. */
const SLOW = {
  visibility: 300_000,
  maxAttempts: 9,
  backoff: { kind: "linear", base: 1_500, cap: 40_000, jitter: 0 },
} as const;

/** Options are resolved when a job is enqueued and stay with it. */
export function queueStamps(harness: Harness): void {
  testStore(harness, "queue.enqueue() stamps the defaults", async (store) => {
    const queue = store.queue("q");
    const job = await queue.getJob(await queue.enqueue("hello"));
    assertExists(job);
    const { priority, visibility, maxAttempts, backoff, expiresAt } = job;
    assertEquals({ priority, visibility, maxAttempts, backoff, expiresAt }, DEFAULTS);
    assertEquals(job.runAt, job.createdAt);
    assertEquals([job.queue, job.attempts, job.payload], ["q", 0, "hello"]);
  });

  testStore(harness, "queue.enqueue() stamps the settings of its queue", async (store) => {
    const queue = store.queue("q", SLOW);
    const job = await queue.getJob(await queue.enqueue(1));
    assertExists(job);
    const { visibility, maxAttempts, backoff } = job;
    assertEquals({ visibility, maxAttempts, backoff }, SLOW);
  });

  testStore(harness, "an option of the enqueue wins over the queue's", async (store) => {
    const queue = store.queue("q", SLOW);
    const id = await queue.enqueue(1, {
      maxAttempts: 2,
      priority: 3,
      delay: 5_000,
      expires: 9_000,
    });
    const job = await queue.getJob(id);
    assertExists(job);
    assertEquals([job.maxAttempts, job.priority, job.visibility], [2, 3, SLOW.visibility]);
    assertEquals(job.runAt.getTime() - job.createdAt.getTime(), 5_000);
    assertEquals(job.expiresAt!.getTime() - job.createdAt.getTime(), 9_000);
  });

  testStore(harness, "expires counts from the enqueue, not from the run time", async (store) => {
    const queue = store.queue("q");
    const runAt = new Date(Date.now() + 1_000);
    const job = await queue.getJob(await queue.enqueue(1, { runAt, expires: 4_000 }));
    assertExists(job);
    assertEquals(job.runAt, runAt);
    assertEquals(job.expiresAt!.getTime() - job.createdAt.getTime(), 4_000);
  });

  testStore(
    harness,
    "a backoff that is a number is the base of the default curve",
    async (store) => {
      const queue = store.queue("q", { backoff: 250 });
      const job = await queue.getJob(await queue.enqueue(1));
      assertEquals(job?.backoff, { ...DEFAULTS.backoff, base: 250 });
    },
  );

  testStore(harness, "queue.enqueueMany() stamps every job alike", async (store) => {
    const queue = store.queue("q", SLOW);
    const ids = await queue.enqueueMany([1, 2, 3], { priority: 8, maxAttempts: 4 });
    for (const id of ids) {
      const job = await queue.getJob(id);
      assertEquals([job?.priority, job?.maxAttempts, job?.visibility], [8, 4, 300_000]);
    }
  });

  testStore(harness, "tx.enqueueTx() stamps the settings of the handle", async (store) => {
    const queue = store.queue<number>("q", SLOW);
    const id = await store.transaction((tx) => tx.enqueueTx(queue, { priority: 2 }, 1));
    const job = await queue.getJob(id);
    assertExists(job);
    const { visibility, maxAttempts, backoff, priority } = job;
    assertEquals({ visibility, maxAttempts, backoff, priority }, { ...SLOW, priority: 2 });
  });

  testStore(harness, "tx.enqueueTx() by name stamps the defaults", async (store) => {
    const queue = store.queue("q", SLOW);
    const ids = await store.transaction(async (tx) => [
      await tx.enqueueTx("q", {}, 1),
      ...await tx.enqueueManyTx("q", {}, [2]),
    ]);
    for (const id of ids) {
      const job = await queue.getJob(id);
      assertExists(job);
      const { priority, visibility, maxAttempts, backoff, expiresAt } = job;
      assertEquals({ priority, visibility, maxAttempts, backoff, expiresAt }, DEFAULTS);
    }
  });

  testStore(harness, "a short stamped visibility lapses under a patient worker", async (store) => {
    await store.queue("q", { visibility: SHORT }).enqueue(1);
    const patient = store.queue("q", { visibility: LONG });
    const job = await claim(patient);
    await passed(SHORT);
    assertEquals(await job.ack(), false);
  });

  testStore(
    harness,
    "a long stamped visibility does not lapse under a hasty worker",
    async (store) => {
      await store.queue("q", { visibility: LONG }).enqueue(1);
      const hasty = store.queue("q", { visibility: SHORT });
      const job = await claim(hasty);
      await passed(SHORT);
      assertEquals(await hasty.sweepExpired(), 0);
      assertEquals(await job.ack(), true);
    },
  );

  testDatabase(harness, "recovery needs no settings of a handler", async (database) => {
    const producer = await database.open();
    await producer.queue("q", { visibility: SHORT, maxAttempts: 1 }).enqueue(1);
    await producer.close();
    const worker = await database.open();
    const job = await claim(worker.queue("q"));
    await worker.close();
    await passed(SHORT);
    const bystander = (await database.open()).queue("q", { maxAttempts: 100 });
    assertEquals(await bystander.sweepExpired(), 1);
    assertEquals((await bystander.getJob(job.id))?.reason, "exhausted");
  });

  testStore(harness, "job.retry() follows the stamped curve, not the worker's", async (store) => {
    const backoff = { kind: "constant", base: 40_000, jitter: 0 } as const;
    await store.queue("q", { backoff, maxAttempts: 2 }).enqueue(1);
    const worker = store.queue("q", { backoff: 1, maxAttempts: 1 });
    const events = eventsOf(store);
    assertEquals(await (await claim(worker)).retry(), true);
    assertEquals(ofType(events, "retried").map((event) => event.delay), [40_000]);
  });

  testStore(harness, "a queue that was never used before takes jobs", async (store) => {
    const id = await store.queue("never heard of").enqueue(null);
    const job = await claim(store.queue("never heard of"));
    assertEquals([job.id, job.payload], [id, null]);
  });
}
