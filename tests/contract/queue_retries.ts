import { assert, assertEquals, assertExists, assertRejects } from "@std/assert";
import type { Backoff } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { claim, eventsOf, LONG, ofType, passed, SHORT } from "./queue_jobs.ts";

/** The end of the year 9999. */
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const CURVES: readonly [name: string, backoff: Backoff, delays: number[]][] = [
  ["exponential", { base: 1_000, cap: 7_000, jitter: 0 }, [1_000, 2_000, 4_000, 7_000, 7_000]],
  ["linear", { kind: "linear", base: 1_000, cap: 2_500, jitter: 0 }, [1_000, 2_000, 2_500, 2_500]],
  ["constant", { kind: "constant", base: 1_000, jitter: 0 }, [1_000, 1_000, 1_000]],
];

/** How an attempt that failed is followed by the next. */
export function queueRetries(harness: Harness): void {
  for (const [name, backoff, delays] of CURVES) {
    testStore(
      harness,
      `job.retry() follows the ${name} curve from attempt to attempt`,
      async (store) => {
        const queue = store.queue<number>("q", { backoff, maxAttempts: 100 });
        const events = eventsOf(store);
        // The n-th job is retried without a delay until its n-th attempt.
        for (const attempt of delays.keys()) {
          await queue.enqueue(attempt);
          for (let before = 0; before < attempt; before++) {
            await (await claim(queue)).retry({ delay: 0 });
          }
          await (await claim(queue)).retry();
        }
        const drawn = ofType(events, "retried").map((event) => event.delay).filter((delay) =>
          delay > 0
        );
        assertEquals(drawn, delays);
      },
    );
  }

  testStore(harness, "job.retry() schedules the job on its curve", async (store) => {
    const queue = store.queue("q", { backoff: { base: 30_000, jitter: 0 } });
    await queue.enqueue(1);
    const job = await claim(queue);
    const before = Date.now();
    assertEquals(await job.retry(), true);
    const snapshot = await queue.getJob(job.id);
    assertExists(snapshot);
    assertEquals([snapshot.state, snapshot.attempts], ["scheduled", 1]);
    assert(Math.abs(snapshot.runAt.getTime() - before - 30_000) < 10_000);
    assertEquals(await queue.claimOne("worker"), undefined);
  });

  testStore(harness, "the default curve spreads its delay by a tenth", async (store) => {
    const queue = store.queue<number>("q");
    const events = eventsOf(store);
    await queue.enqueueMany(Array(40).fill(0));
    for (const job of await queue.claimBatch("worker", 40)) await job.retry();
    const delays = ofType(events, "retried").map((event) => event.delay);
    assert(delays.every((delay) => delay >= 4_500 && delay <= 5_500), delays.join());
    assert(new Set(delays).size > 1, "every delay is the same");
  });

  testStore(
    harness,
    "job.retry() long past every power of two waits for the cap",
    async (store) => {
      const queue = store.queue("q", {
        backoff: { cap: 90_000, jitter: 0 },
        maxAttempts: 1_000_000,
      });
      const events = eventsOf(store);
      await queue.enqueue(1);
      for (let attempt = 1; attempt < 70; attempt++) await (await claim(queue)).retry({ delay: 0 });
      const job = await claim(queue);
      assertEquals([job.attempt, job.lastAttempt], [70, false]);
      assertEquals(await job.retry(), true);
      assertEquals(ofType(events, "retried").at(-1)?.delay, 90_000);
      assertEquals((await queue.getJob(job.id))?.state, "scheduled");
    },
  );

  testStore(
    harness,
    "a curve that has come to lead past the year 9999 loses no job",
    async (store) => {
      const base = LAST_INSTANT - Date.now() - SHORT;
      const queue = store.queue("q", { backoff: { base, cap: base, jitter: 0 } });
      await passed(SHORT);
      await queue.enqueue(1);
      const job = await claim(queue);
      assertEquals(await job.retry(), true);
      const snapshot = await queue.getJob(job.id);
      assertEquals(snapshot?.state, "scheduled");
      assert(snapshot!.runAt.getTime() <= LAST_INSTANT, String(snapshot?.runAt));
    },
  );

  testStore(harness, "job.retry() with a delay leaves the curve", async (store) => {
    const queue = store.queue("q", { backoff: LONG });
    await queue.enqueue(1);
    assertEquals(await (await claim(queue)).retry({ delay: SHORT }), true);
    await passed(SHORT);
    assertEquals((await claim(queue)).attempt, 2);
  });

  testStore(harness, "job.retry() refuses what is no delay and keeps the claim", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    const job = await claim(queue);
    for (const delay of [-1, NaN, Infinity, LAST_INSTANT]) {
      await assertRejects(() => job.retry({ delay }), RangeError, `job ${job.id}`);
    }
    await assertRejects(() => job.retry({ wait: 1 } as never), TypeError, "wait");
    assertEquals(await job.ack(), true);
  });

  testStore(harness, "job.retry() keeps the error for the next attempt", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    const first = await claim(queue);
    assertEquals(first.lastError, undefined);
    await first.retry({ delay: 0, error: new TypeError("no route to host") });
    const second = await claim(queue);
    assertEquals(second.lastError, "TypeError: no route to host");
    await second.retry({ delay: 0, error: "mail server is busy" });
    assertEquals((await queue.getJob(second.id))?.lastError, "mail server is busy");
  });

  testStore(harness, "an attempt that lapses keeps the error of the one before", async (store) => {
    const queue = store.queue("q", { visibility: SHORT });
    await queue.enqueue(1);
    const first = await claim(queue);
    await first.retry({ delay: 0, error: "busy" });
    await claim(queue);
    await passed(SHORT);
    assertEquals((await claim(queue)).lastError, "busy");
  });

  testStore(harness, "job.lastAttempt says that a retry means dead", async (store) => {
    const queue = store.queue("q", { maxAttempts: 3 });
    await queue.enqueue(1);
    const said: boolean[] = [];
    const states: unknown[] = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      const job = await claim(queue);
      said.push(job.lastAttempt);
      assertEquals(await job.retry({ delay: 0, error: `failure ${attempt}` }), true);
      states.push((await queue.getJob(job.id))?.state);
    }
    assertEquals(said, [false, false, true]);
    assertEquals(states, ["ready", "ready", "dead"]);
    const [dead] = await queue.deadJobs();
    assertEquals([dead?.reason, dead?.attempts, dead?.lastError], ["exhausted", 3, "failure 3"]);
  });

  for (const recovery of ["claim", "sweep"]) {
    testStore(
      harness,
      `a job whose workers all die is dead at the next ${recovery}`,
      async (store) => {
        const queue = store.queue("q", { visibility: SHORT, maxAttempts: 3 });
        const id = await queue.enqueue(1);
        for (let attempt = 1; attempt <= 3; attempt++) {
          assertEquals((await claim(queue)).attempt, attempt);
          await passed(SHORT);
          if (recovery === "sweep") assertEquals(await queue.sweepExpired(), 1);
        }
        assertEquals(await queue.claimOne("worker"), undefined);
        const job = await queue.getJob(id);
        assertEquals([job?.state, job?.reason, job?.attempts], ["dead", "exhausted", 3]);
      },
    );
  }
}
