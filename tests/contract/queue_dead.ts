import { assertEquals, assertExists, assertThrows } from "@std/assert";
import { CodecError, type Job, type Queue, type Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { claim, LONG, passed, SHORT } from "./queue_jobs.ts";

/** A queue with `count` dead jobs and one of every other state; the ids of the dead, ascending. */
async function graveyard(
  store: Store<unknown>,
  count: number,
): Promise<{ queue: Queue<number>; ids: number[] }> {
  const queue = store.queue<number>("q");
  const ids = await queue.enqueueMany(Array.from({ length: count }, (_, index) => index));
  // From the last to the first: their order is by id, not by death.
  for (const job of (await queue.claimBatch("worker", count)).reverse()) await job.fail();
  await queue.enqueue(-1, { priority: 1 });
  await claim(queue);
  await queue.enqueue(-2);
  await queue.enqueue(-3, { delay: LONG });
  return { queue, ids };
}

/** Dead jobs: how they stay, and how they leave. */
export function queueDead(harness: Harness): void {
  testStore(harness, "job.fail() keeps the job with reason, attempts and error", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue({ to: "nobody" });
    await (await claim(queue)).retry({ delay: 0, error: "busy" });
    const job = await claim(queue);
    assertEquals(await job.fail(new Error("no such address")), true);
    assertEquals(await queue.claimOne("worker"), undefined);
    const [dead] = await queue.deadJobs();
    assertExists(dead);
    assertEquals([dead.state, dead.reason, dead.attempts], ["dead", "failed", 2]);
    assertEquals([dead.lastError, dead.payload], ["Error: no such address", { to: "nobody" }]);
    assertEquals(dead, await queue.getJob(job.id));
  });

  testStore(harness, "a dead job outlives sweeps", async (store) => {
    const { queue, ids } = await graveyard(store, 3);
    assertEquals(await queue.sweepExpired(), 0);
    assertEquals((await queue.deadJobs()).map((job) => job.id), ids);
  });

  testStore(harness, "queue.deadJobs() pages by id", async (store) => {
    const { queue, ids } = await graveyard(store, 7);
    const pages: number[][] = [];
    for (let after = 0; pages.length < 7;) {
      const page = (await queue.deadJobs({ after, limit: 3 })).map((job) => job.id);
      if (page.length === 0) break;
      pages.push(page);
      after = page.at(-1)!;
    }
    assertEquals(pages, [ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)]);
  });

  testStore(harness, "queue.deadJobs() gives a hundred unless asked for more", async (store) => {
    const { queue, ids } = await graveyard(store, 101);
    assertEquals((await queue.deadJobs()).map((job) => job.id), ids.slice(0, 100));
    assertEquals((await queue.deadJobs({ limit: 1_000 })).length, 101);
  });

  testStore(harness, "queue.deadJobs() shows the dead of its own queue", async (store) => {
    await graveyard(store, 3);
    assertEquals(await store.queue("other").deadJobs(), []);
  });

  testStore(harness, "queue.requeue() gives a dead job all its attempts back", async (store) => {
    const queue = store.queue("q", { maxAttempts: 2 });
    const id = await queue.enqueue("work", { priority: 4 });
    await (await claim(queue)).retry({ delay: 0 });
    await (await claim(queue)).retry({ error: "broken" });
    assertEquals((await queue.getJob(id))?.reason, "exhausted");
    assertEquals(await queue.requeue(id), true);
    const job = await queue.getJob(id);
    assertExists(job);
    assertEquals([job.state, job.attempts, job.maxAttempts, job.priority], ["ready", 0, 2, 4]);
    assertEquals([job.reason, job.diedAt], [undefined, undefined]);
    assertEquals(await queue.deadJobs(), []);
    const attempts: number[] = [];
    for (let job; (job = await queue.claimOne("worker")) !== undefined;) {
      attempts.push(job.attempt);
      await job.retry({ delay: 0 });
    }
    assertEquals(attempts, [1, 2]);
  });

  testStore(harness, "queue.requeue() is false for a job that is not dead here", async (store) => {
    const { queue, ids } = await graveyard(store, 1);
    const { ready, scheduled, claimed } = await queue.stats();
    assertEquals([ready, scheduled, claimed], [1, 1, 1]);
    for (const id of [ids[0]! + 1, ids[0]! + 2, ids[0]! + 3, 10 ** 9]) {
      assertEquals(await queue.requeue(id), false);
    }
    assertEquals(await store.queue("other").requeue(ids[0]!), false);
    const { oldestReadyAt: _, ...counts } = await queue.stats();
    assertEquals(counts, { ready: 1, scheduled: 1, claimed: 1, dead: 1 });
  });

  testStore(
    harness,
    "the handle that failed a job cannot ack it once it is requeued",
    async (store) => {
      const queue = store.queue("q");
      await queue.enqueue(1);
      const stale = await claim(queue);
      await stale.fail();
      await queue.requeue(stale.id);
      const fresh = await claim(queue);
      assertEquals(fresh.attempt, stale.attempt);
      assertEquals(await stale.ack(), false);
      assertEquals(await stale.heartbeat(), false);
      assertEquals(await fresh.ack(), true);
    },
  );

  testStore(harness, "queue.purgeDead() deletes the dead and nobody else", async (store) => {
    const { queue } = await graveyard(store, 5);
    await store.queue<number>("other").enqueue(1);
    await (await claim(store.queue<number>("other"))).fail();
    assertEquals(await queue.purgeDead(), 5);
    const { oldestReadyAt: _, ...counts } = await queue.stats();
    assertEquals(counts, { ready: 1, scheduled: 1, claimed: 1, dead: 0 });
    assertEquals((await store.queue("other").stats()).dead, 1);
    assertEquals(await queue.purgeDead(), 0);
  });

  testStore(harness, "queue.purgeDead() spares those that died lately", async (store) => {
    const { queue } = await graveyard(store, 3);
    await passed(SHORT);
    assertEquals(await queue.purgeDead({ age: LONG }), 0);
    assertEquals((await queue.stats()).dead, 3);
    assertEquals(await queue.purgeDead({ age: SHORT }), 3);
  });

  testStore(harness, "queue.purgeDead() deletes more rows than one step does", async (store) => {
    const queue = store.queue<number>("q", { maxAttempts: 1, visibility: 3 * SHORT });
    await queue.enqueueMany(Array(2_500).fill(0));
    await queue.claimBatch("worker", 2_500);
    await passed(3 * SHORT);
    assertEquals(await queue.sweepExpired(), 2_500);
    assertEquals(await queue.purgeDead(), 2_500);
    assertEquals((await queue.stats()).dead, 0);
  });

  testStore(
    harness,
    "a poisoned row costs only itself and can be failed",
    async (store, database) => {
      const queue = store.queue<number>("q");
      const ids = await queue.enqueueMany([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      await database.poisonJob(ids[4]!, "{not json");
      const jobs = await queue.claimBatch("worker", 10);
      assertEquals(jobs.map((job) => job.id), ids);
      const poisoned: Job<number> = jobs.splice(4, 1)[0]!;
      assertEquals(jobs.map((job) => job.payload), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
      assertThrows(() => poisoned.payload, CodecError, String(ids[4]));
      assertThrows(() => poisoned.payloadAs<number>(), CodecError);
      assertEquals(await poisoned.fail("cannot be read"), true);
      assertEquals((await queue.ackBatch(jobs)).length, 9);
      assertEquals((await queue.getJob(ids[4]!))?.reason, "failed");
    },
  );

  testStore(harness, "a poisoned dead row costs its page nothing", async (store, database) => {
    const { queue, ids } = await graveyard(store, 3);
    await database.poisonJob(ids[1]!, "");
    const dead = await queue.deadJobs();
    assertEquals([dead[0]?.payload, dead[2]?.payload], [0, 2]);
    assertEquals(dead[1]?.reason, "failed");
    assertThrows(() => dead[1]?.payload, CodecError);
  });
}
