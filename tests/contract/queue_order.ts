import { assertEquals, assertExists } from "@std/assert";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claim, claimFirmly, LONG, passed, SHORT } from "./queue_jobs.ts";

/** A run time that has come long ago, `seconds` after the others. */
function past(seconds: number): Date {
  return new Date(Date.UTC(2020, 0, 1, 0, 0, seconds));
}

/** In which order jobs are claimed. */
export function queueOrder(harness: Harness): void {
  testStore(
    harness,
    "queue.claimBatch() returns jobs by priority, then run time, then id",
    async (store) => {
      const queue = store.queue<string>("q");
      await queue.enqueue("e", { runAt: past(9) });
      await queue.enqueue("f", { runAt: past(9) });
      await queue.enqueue("d", { runAt: past(1) });
      await queue.enqueue("g", { runAt: past(0), priority: -5 });
      await queue.enqueue("b", { runAt: past(8), priority: 7 });
      await queue.enqueue("c", { runAt: past(8), priority: 7 });
      await queue.enqueue("a", { runAt: past(2), priority: 7 });
      const jobs = await queue.claimBatch("worker", 10);
      assertEquals(jobs.map((job) => job.payload).join(""), "abcdefg");
    },
  );

  testStore(harness, "queue.claimOne() takes the job that comes first each time", async (store) => {
    const queue = store.queue<string>("q");
    await queue.enqueue("c", { runAt: past(9) });
    await queue.enqueue("b", { runAt: past(1) });
    await queue.enqueue("a", { runAt: past(5), priority: 1 });
    let order = "";
    for (let job; (job = await queue.claimOne("worker")) !== undefined;) order += job.payload;
    assertEquals(order, "abc");
  });

  testStore(harness, "queue.claimBatch() leaves the jobs that come last", async (store) => {
    const queue = store.queue<string>("q");
    for (const payload of ["d", "c", "b", "a"]) {
      await queue.enqueue(payload, { priority: -payload.charCodeAt(0) });
    }
    const first = await queue.claimBatch("worker", 2);
    const rest = await queue.claimBatch("worker", 10);
    assertEquals(first.map((job) => job.payload), ["a", "b"]);
    assertEquals(rest.map((job) => job.payload), ["c", "d"]);
  });

  testStore(harness, "a priority at either end of int32 keeps its place", async (store) => {
    const queue = store.queue<number>("q");
    for (const priority of [0, 2 ** 31 - 1, -(2 ** 31), 1, -1]) {
      await queue.enqueue(priority, { priority });
    }
    const jobs = await queue.claimBatch("worker", 10);
    const expected = [2 ** 31 - 1, 1, 0, -1, -(2 ** 31)];
    assertEquals(jobs.map((job) => job.payload), expected);
    assertEquals(jobs.map((job) => job.priority), expected);
  });

  testStore(harness, "jobs of one run time are claimed by id", async (store) => {
    const queue = store.queue<number>("q");
    const payloads = Array.from({ length: 50 }, (_, index) => index);
    const ids = await queue.enqueueMany(payloads, { runAt: past(0) });
    const jobs = await queue.claimBatch("worker", 50);
    assertEquals(jobs.map((job) => job.id), ids);
  });

  testStore(
    harness,
    "queue.enqueueMany() gives ids in the order of the payloads",
    async (store) => {
      const queue = store.queue<string>("q");
      const payloads = Array.from({ length: 120 }, (_, index) => `job ${index}`);
      const ids = await queue.enqueueMany(payloads);
      assertEquals(ids, ids.toSorted((a, b) => a - b));
      const snapshots = await Promise.all(ids.map((id) => queue.getJob(id)));
      assertEquals(snapshots.map((job) => job?.payload), payloads);
    },
  );

  testStore(harness, "scheduled jobs become ready in run-time order", async (store) => {
    const queue = store.queue<number>("q");
    const due = Date.now() + 150;
    // More of each than an engine may care to promote in one step, and the last ones enqueued first.
    for (const turn of [2, 1, 0]) {
      await queue.enqueueMany(Array(700).fill(turn), { runAt: new Date(due + turn) });
    }
    await passed(155);
    let turn = 0;
    let total = 0;
    for (let jobs; (jobs = await queue.claimBatch("worker", 100)).length > 0;) {
      for (const job of jobs) {
        assertEquals(job.payload >= turn, true, `a job of turn ${job.payload} came after ${turn}`);
        turn = job.payload;
      }
      total += jobs.length;
    }
    assertEquals(total, 2_100);
  });

  testStore(harness, "a scheduled job stands in nobody's way", async (store) => {
    const queue = store.queue<string>("q");
    const id = await queue.enqueue("later", { delay: LONG, priority: 100 });
    await queue.enqueue("now", { priority: -100 });
    assertEquals((await claim(queue)).payload, "now");
    assertEquals(await queue.claimOne("worker"), undefined);
    assertEquals((await queue.getJob(id))?.state, "scheduled");
  });

  testStore(harness, "a job is scheduled for exactly the instant it was given", async (store) => {
    const queue = store.queue("q");
    const runAt = new Date("2100-02-03T04:05:06.789Z");
    const id = await queue.enqueue("in 2100", { runAt });
    const job = await queue.getJob(id);
    assertEquals([job?.state, job?.runAt], ["scheduled", runAt]);
  });

  for (const recovery of ["a claim", "a sweep"]) {
    testStore(harness, `a job recovered by ${recovery} keeps its place`, async (store) => {
      const queue = store.queue<string>("q", { visibility: SHORT });
      for (const payload of ["a", "b", "c"]) await queue.enqueue(payload);
      assertEquals((await claim(queue)).payload, "a");
      await passed(SHORT);
      if (recovery === "a sweep") assertEquals(await queue.sweepExpired(), 1);
      const jobs = await queue.claimBatch("worker", 10);
      assertEquals(jobs.map((job) => job.payload), ["a", "b", "c"]);
    });
  }

  testStore(
    harness,
    "a recovered job keeps its place before one of the same priority",
    async (store) => {
      const queue = store.queue<string>("q", { visibility: SHORT, maxAttempts: 1_000 });
      await queue.enqueue("first", { runAt: past(0), priority: 3 });
      await claim(queue);
      await queue.enqueue("urgent", { priority: 4 });
      await queue.enqueue("second", { runAt: past(1), priority: 3 });
      await passed(SHORT);
      const order: string[] = [];
      for (let turn = 0; turn < 3; turn++) order.push((await claimFirmly(queue)).payload);
      assertEquals(order, ["urgent", "first", "second"]);
    },
  );

  testStore(harness, "job.release() gives the job its place back", async (store) => {
    const queue = store.queue<string>("q");
    for (const payload of ["a", "b", "c"]) await queue.enqueue(payload);
    const job = await claim(queue);
    assertEquals(await job.release(), true);
    const jobs = await queue.claimBatch("worker", 10);
    assertEquals(jobs.map((job) => job.payload), ["a", "b", "c"]);
  });

  testStore(
    harness,
    "job.retry() without a delay queues behind what is due already",
    async (store) => {
      const queue = store.queue<string>("q");
      await queue.enqueue("a", { runAt: past(0) });
      await queue.enqueue("b", { runAt: past(1) });
      const job = await claim(queue);
      assertEquals(await job.retry({ delay: 0 }), true);
      const jobs = await queue.claimBatch("worker", 10);
      assertEquals(jobs.map((job) => job.payload), ["b", "a"]);
    },
  );

  testStore(harness, "queue.claimBatch() takes jobs of its own queue only", async (store) => {
    await store.queue<string>("a").enqueue("of a");
    await store.queue<string>("A").enqueue("of A");
    await store.queue<string>("a ").enqueue("of a with a space");
    const jobs = await store.queue<string>("a").claimBatch("worker", 10);
    assertEquals(jobs.map((job) => job.payload), ["of a"]);
    assertEquals(await store.queue("a").claimBatch("worker", 10), []);
  });

  testDatabase(harness, "a job outlives the store that enqueued it", async (database) => {
    const first = await database.open();
    const id = await first.queue("never seen before").enqueue({ to: "a@example.org" });
    await first.close();
    const second = await database.open();
    const job = await second.queue("never seen before").claimOne("worker");
    assertExists(job);
    assertEquals([job.id, job.payload, job.attempt], [id, { to: "a@example.org" }, 1]);
  });
}
