import { assertEquals } from "@std/assert";
import type { Job, Queue, Store } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { eventsOf, LONG, passed, SHORT } from "./queue_jobs.ts";
import { until } from "./wait.ts";

/** A job that was claimed in time, and whose expiry has passed meanwhile. */
async function overdueClaim(store: Store<unknown>): Promise<[Queue<string>, Job<string>]> {
  let expires = SHORT;
  const claimed = await until(async () => {
    // A new queue each time: the machine may be too busy to claim before the expiry.
    const queue = store.queue<string>(`q ${expires}`, { visibility: LONG });
    await queue.enqueue("urgent", { expires });
    const job = await queue.claimOne("worker");
    if (job === undefined) expires *= 2;
    return job && { queue, job };
  }, "a claim before the expiry");
  await passed(expires);
  return [claimed.queue, claimed.job];
}

/** What the expiry of a job limits. */
export function queueExpiry(harness: Harness): void {
  testStore(harness, "an expired job is not started", async (store) => {
    const queue = store.queue<string>("q");
    const id = await queue.enqueue("urgent", { expires: SHORT });
    await queue.enqueue("patient", { expires: LONG });
    await passed(SHORT);
    const jobs = await queue.claimBatch("worker", 10);
    assertEquals(jobs.map((job) => job.payload), ["patient"]);
    const job = await queue.getJob(id);
    assertEquals([job?.state, job?.reason, job?.attempts], ["dead", "expired", 0]);
  });

  testStore(harness, "no expired job is started, however many there are", async (store) => {
    const queue = store.queue<number>("q");
    await queue.enqueueMany(Array(1_200).fill(0), { expires: SHORT });
    await passed(SHORT);
    // Somebody with a step in mind may have moved a part of them only.
    assertEquals(await queue.claimBatch("worker", 2_000), []);
    assertEquals((await queue.stats()).dead, 1_200);
    assertEquals((await queue.deadJobs({ limit: 2_000 })).length, 1_200);
  });

  testStore(harness, "a live claim past the expiry may extend and ack", async (store) => {
    const [queue, job] = await overdueClaim(store);
    assertEquals((await queue.getJob(job.id))?.state, "claimed");
    assertEquals(await queue.sweepExpired(), 0);
    assertEquals(await job.heartbeat(2 * LONG), true);
    assertEquals(await job.ack(), true);
    assertEquals(await queue.getJob(job.id), undefined);
  });

  testStore(harness, "queue.ackBatch() lands live claims past the expiry", async (store) => {
    const [queue, job] = await overdueClaim(store);
    assertEquals(await queue.ackBatch([job]), [job.id]);
  });

  testStore(harness, "job.retry() past the expiry lands and the job is dead", async (store) => {
    const [queue, job] = await overdueClaim(store);
    assertEquals(job.lastAttempt, false);
    assertEquals(await job.retry({ delay: 0, error: "too late" }), true);
    const dead = await queue.getJob(job.id);
    assertEquals([dead?.state, dead?.reason], ["dead", "expired"]);
    assertEquals([dead?.attempts, dead?.lastError], [1, "too late"]);
    assertEquals(await queue.sweepExpired(), 0, "nothing is left to move");
    assertEquals(await queue.claimOne("worker"), undefined);
  });

  testStore(harness, "job.release() past the expiry lands and the job is dead", async (store) => {
    const [queue, job] = await overdueClaim(store);
    assertEquals(await job.release(), true);
    const dead = await queue.getJob(job.id);
    assertEquals([dead?.state, dead?.reason], ["dead", "expired"]);
    assertEquals(await queue.sweepExpired(), 0, "nothing is left to move");
    assertEquals(await queue.claimOne("worker"), undefined);
  });

  for (const call of ["retry", "release"] as const) {
    testStore(harness, `job.${call}() past the expiry is reported as a death`, async (store) => {
      const [, job] = await overdueClaim(store);
      const events = eventsOf(store);
      assertEquals(await job[call](), true);
      assertEquals(events.map((event) => event.type), ["dead"]);
    });
  }

  testStore(harness, "job.fail() past the expiry is a failure", async (store) => {
    const [queue, job] = await overdueClaim(store);
    assertEquals(await job.fail("broken"), true);
    assertEquals((await queue.getJob(job.id))?.reason, "failed");
  });

  testStore(harness, "queue.cancel() takes a live claim past the expiry", async (store) => {
    const [queue, job] = await overdueClaim(store);
    assertEquals(await queue.cancel(job.id), true);
    assertEquals(await job.ack(), false);
  });

  testStore(harness, "queue.requeue() forgets the expiry", async (store) => {
    const queue = store.queue<string>("q");
    const id = await queue.enqueue("urgent", { expires: SHORT });
    await passed(SHORT);
    assertEquals(await queue.sweepExpired(), 1);
    assertEquals(await queue.requeue(id), true);
    assertEquals((await queue.getJob(id))?.expiresAt, undefined);
    assertEquals((await queue.claimBatch("worker", 10)).map((job) => job.id), [id]);
  });

  testDatabase(harness, "a job of an outbox expires like another", async (database) => {
    const outbox = (await database.open()).outbox<string>("mail");
    const id = await outbox.enqueue("urgent", { expires: SHORT });
    await passed(SHORT);
    assertEquals(await outbox.runOnce("mailer", () => {}), false);
    assertEquals((await outbox.getJob(id))?.reason, "expired");
  });
}
