import { assertEquals, assertExists } from "@std/assert";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claim, LONG, passed, SHORT } from "./queue_jobs.ts";

/** What `cancel` takes away, and what `getJob` still finds. */
export function queueLookups(harness: Harness): void {
  testStore(harness, "queue.cancel() deletes a ready job", async (store) => {
    const queue = store.queue("q");
    const id = await queue.enqueue(1);
    assertEquals(await queue.cancel(id), true);
    assertEquals(await queue.getJob(id), undefined);
    assertEquals(await queue.claimOne("worker"), undefined);
    assertEquals(await queue.cancel(id), false);
  });

  testStore(harness, "queue.cancel() deletes a scheduled job", async (store) => {
    const queue = store.queue("q");
    const id = await queue.enqueue(1, { delay: SHORT });
    assertEquals(await queue.cancel(id), true);
    assertEquals(await queue.getJob(id), undefined);
    await passed(SHORT);
    assertEquals(await queue.claimOne("worker"), undefined);
  });

  for (const call of ["ack", "retry", "fail", "heartbeat", "release"] as const) {
    testStore(harness, `queue.cancel() makes the holder's ${call}() false`, async (store) => {
      const queue = store.queue("q");
      await queue.enqueue(1);
      const job = await claim(queue);
      assertEquals(await queue.cancel(job.id), true);
      assertEquals(await job[call](), false);
      assertEquals(await queue.getJob(job.id), undefined);
      assertEquals(await queue.stats().then(({ dead, ready }) => dead + ready), 0);
    });
  }

  testStore(harness, "queue.cancel() deletes a job whose lease has ended", async (store) => {
    const queue = store.queue("q", { visibility: SHORT });
    const id = await queue.enqueue(1);
    await claim(queue);
    await passed(SHORT);
    assertEquals(await queue.cancel(id), true);
    assertEquals(await queue.claimOne("worker"), undefined);
  });

  testStore(harness, "queue.cancel() leaves a dead job", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    const job = await claim(queue);
    await job.fail("broken");
    assertEquals(await queue.cancel(job.id), false);
    assertEquals((await queue.getJob(job.id))?.lastError, "broken");
  });

  testStore(harness, "queue.cancel() is false for a finished or unknown job", async (store) => {
    const queue = store.queue("q");
    const id = await queue.enqueue(1);
    await (await claim(queue)).ack();
    assertEquals(await queue.cancel(id), false);
    assertEquals(await queue.cancel(id + 1_000), false);
    assertEquals(await queue.cancel(Number.MAX_SAFE_INTEGER), false);
  });

  testStore(harness, "queue.cancel() leaves a job of another queue", async (store) => {
    const id = await store.queue("a").enqueue(1);
    const mail = await store.outbox("b").enqueue(2);
    assertEquals(await store.queue("b").cancel(id), false);
    assertEquals(await store.queue("b").cancel(mail), false);
    assertEquals((await store.queue("a").getJob(id))?.state, "ready");
    assertEquals((await store.outbox("b").getJob(mail))?.state, "ready");
  });

  testDatabase(harness, "queue.cancel() takes a job another store holds", async (database) => {
    const [holder, canceller] = [await database.open(), await database.open()];
    await holder.queue("q").enqueue(1);
    const job = await claim(holder.queue("q"));
    assertEquals(await canceller.queue("q").cancel(job.id), true);
    assertEquals(await job.ack(), false);
  });

  testStore(
    harness,
    "queue.getJob() finds no acked, cancelled, purged or unknown job",
    async (store) => {
      const queue = store.queue<string>("q");
      const ids = await queue.enqueueMany(["acked", "cancelled", "purged", "kept"]);
      const jobs = await queue.claimBatch("worker", 3);
      await jobs[0]!.ack();
      await queue.cancel(ids[1]!);
      await jobs[2]!.fail();
      await queue.purgeDead();
      const found = await Promise.all([...ids, 0, 10 ** 12].map((id) => queue.getJob(id)));
      assertEquals(found.map((job) => job?.payload), [
        undefined,
        undefined,
        undefined,
        "kept",
        undefined,
        undefined,
      ]);
    },
  );

  testStore(harness, "queue.getJob() finds no job of another queue", async (store) => {
    const id = await store.queue("a").enqueue(1);
    const mail = await store.outbox("b").enqueue(2);
    assertEquals(await store.queue("b").getJob(id), undefined);
    assertEquals(await store.queue("b").getJob(mail), undefined);
    assertEquals(await store.outbox("a").getJob(id), undefined);
  });

  testStore(harness, "queue.getJob() tells all there is to know of a job", async (store) => {
    const queue = store.queue("q", { visibility: LONG, maxAttempts: 4 });
    const id = await queue.enqueue({ to: "a@example.org" }, { priority: 2, expires: LONG });
    await (await claim(queue, "pod-1")).retry({ delay: 0, error: "busy" });
    const job = await claim(queue, "pod-2");
    const snapshot = await queue.getJob(id);
    assertExists(snapshot);
    const { runAt, createdAt, expiresAt, leaseUntil, backoff, payload, ...rest } = snapshot;
    assertEquals(rest, {
      id,
      queue: "q",
      state: "claimed",
      priority: 2,
      attempts: 2,
      maxAttempts: 4,
      visibility: LONG,
      worker: "pod-2",
      lastError: "busy",
      reason: undefined,
      diedAt: undefined,
    });
    assertEquals([runAt, createdAt, expiresAt], [job.runAt, job.createdAt, job.expiresAt]);
    assertEquals(payload, { to: "a@example.org" });
    assertExists(leaseUntil);
    assertExists(backoff);
  });
}
