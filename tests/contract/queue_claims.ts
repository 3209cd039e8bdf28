import { assert, assertEquals, assertExists, assertRejects } from "@std/assert";
import type { Job, Queue, Store } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claim, claimFirmly, LONG, passed, SHORT } from "./queue_jobs.ts";

/** Every call of a holder, as one that would leave a trace if it landed. */
const CALLS: readonly [name: string, call: (job: Job<unknown>) => Promise<boolean>][] = [
  ["ack", (job) => job.ack()],
  ["retry", (job) => job.retry({ delay: LONG, error: "stale" })],
  ["fail", (job) => job.fail("stale")],
  ["heartbeat", (job) => job.heartbeat(2 * LONG)],
  ["release", (job) => job.release()],
];

/** A queue with one job in it whose claims are short. */
async function shortLived(store: Store<unknown>): Promise<Queue<string>> {
  const queue = store.queue<string>("q", { visibility: SHORT, maxAttempts: 1_000 });
  await queue.enqueue("work");
  return queue;
}

/** What a claim lets its holder do, and for how long. */
export function queueClaims(harness: Harness): void {
  for (const [name, call] of CALLS) {
    testStore(
      harness,
      `job.${name}() is false and changes nothing once the same worker claimed the job again`,
      async (store) => {
        const queue = await shortLived(store);
        const stale = await claim(queue, "pod-1");
        await passed(SHORT);
        const fresh = await claimFirmly(queue, "pod-1");
        const before = await queue.getJob(fresh.id);
        assertEquals(await call(stale), false);
        assertEquals(await queue.getJob(fresh.id), before);
        assertEquals(await fresh.ack(), true);
      },
    );

    testStore(
      harness,
      `job.${name}() is false and changes nothing once the lease has ended, re-claimed or not`,
      async (store) => {
        const queue = await shortLived(store);
        const job = await claim(queue);
        await passed(SHORT);
        const before = await queue.getJob(job.id);
        assertEquals(await call(job), false);
        assertEquals(before?.state, "ready");
        assertEquals(await queue.getJob(job.id), before);
        assertEquals((await claim(queue)).id, job.id);
      },
    );

    testStore(
      harness,
      `job.${name}() is false once the job was given back and claimed again`,
      async (store) => {
        const queue = store.queue("q");
        await queue.enqueue(1);
        const first = await claim(queue, "pod-1");
        assertEquals(await first.release(), true);
        const second = await claim(queue, "pod-1");
        const before = await queue.getJob(second.id);
        assertEquals(await call(first), false);
        assertEquals(await queue.getJob(second.id), before);
        assertEquals(await second.ack(), true);
      },
    );

    if (name === "heartbeat") continue;
    testStore(harness, `no call of a holder lands after job.${name}()`, async (store) => {
      const queue = store.queue("q");
      await queue.enqueue(1);
      const job = await claim(queue);
      assertEquals(await call(job), true);
      const before = await queue.getJob(job.id);
      for (const [later, again] of CALLS) assertEquals(await again(job), false, later);
      assertEquals(await queue.getJob(job.id), before);
    });
  }

  testStore(
    harness,
    "a claim names its worker, its attempt and the end of its lease",
    async (store) => {
      const queue = store.queue("q", { maxAttempts: 2 });
      await queue.enqueue("work");
      const before = Date.now();
      const job = await claim(queue, "pod-1");
      assertEquals([job.queue, job.worker, job.attempt, job.maxAttempts], ["q", "pod-1", 1, 2]);
      assertEquals(job.lastAttempt, false);
      const snapshot = await queue.getJob(job.id);
      assertExists(snapshot?.leaseUntil);
      assertEquals([snapshot.state, snapshot.worker, snapshot.attempts], ["claimed", "pod-1", 1]);
      assert(Math.abs(snapshot.leaseUntil.getTime() - before - 60_000) < 10_000);
    },
  );

  testStore(harness, "a claimed job is not claimed again while its lease lives", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    await claim(queue);
    assertEquals(await queue.claimOne("worker"), undefined);
    assertEquals(await queue.sweepExpired(), 0);
    assertEquals(await queue.claimBatch("worker", 10), []);
  });

  testStore(harness, "each claim of a job has one more attempt", async (store) => {
    const queue = await shortLived(store);
    for (const attempt of [1, 2, 3]) {
      const job = await claim(queue);
      assertEquals(job.attempt, attempt);
      await passed(SHORT);
    }
  });

  testStore(harness, "job.heartbeat() carries a claim beyond its visibility", async (store) => {
    const queue = await shortLived(store);
    const job = await claimFirmly(queue);
    await passed(SHORT);
    assertEquals((await queue.getJob(job.id))?.state, "claimed");
    assertEquals(await queue.claimOne("worker"), undefined);
    assertEquals(await job.ack(), true);
  });

  testStore(
    harness,
    "job.heartbeat() extends by the stamped visibility from now",
    async (store) => {
      const queue = store.queue("q", { visibility: LONG });
      await queue.enqueue(1);
      const job = await claim(queue);
      const first = await queue.getJob(job.id);
      await passed(20);
      assertEquals(await job.heartbeat(), true);
      const second = await queue.getJob(job.id);
      const gained = second!.leaseUntil!.getTime() - first!.leaseUntil!.getTime();
      assert(gained >= 20 && gained < LONG / 2, `the lease gained ${gained} ms`);
    },
  );

  testStore(harness, "job.heartbeat() never shortens a lease", async (store) => {
    const queue = store.queue("q", { visibility: LONG });
    await queue.enqueue(1);
    const job = await claim(queue);
    const before = await queue.getJob(job.id);
    assertEquals(await job.heartbeat(1), true);
    assertEquals(await queue.getJob(job.id), before);
    await passed(1);
    assertEquals(await job.ack(), true);
  });

  testStore(harness, "job.heartbeat() refuses a duration that is none", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    const job = await claim(queue);
    for (const extend of [0, -1, NaN, Infinity]) {
      await assertRejects(() => job.heartbeat(extend), RangeError, `job ${job.id}`);
    }
    assertEquals(await job.ack(), true);
  });

  testStore(harness, "job.release() spends no attempt", async (store) => {
    const queue = store.queue("q", { maxAttempts: 1 });
    const id = await queue.enqueue(1);
    for (let turn = 0; turn < 10; turn++) {
      const job = await claim(queue);
      assertEquals([job.attempt, job.lastAttempt], [1, true]);
      assertEquals(await job.release(), true);
      const snapshot = await queue.getJob(id);
      assertEquals([snapshot?.state, snapshot?.attempts], ["ready", 0]);
    }
  });

  testStore(harness, "queue.ackBatch() gives the ids that landed", async (store) => {
    const queue = store.queue<number>("q");
    await queue.enqueueMany([0, 1, 2, 3, 4, 5]);
    const jobs = await queue.claimBatch("worker", 6);
    const ids = jobs.map((job) => job.id);
    await jobs[1]!.release();
    await queue.cancel(ids[2]!);
    await jobs[3]!.ack();
    const again = await claim(queue);
    assertEquals(await queue.ackBatch(jobs), [ids[0], ids[4], ids[5]]);
    assertEquals((await queue.getJob(again.id))?.state, "claimed");
    assertEquals(await queue.ackBatch(jobs), []);
    assertEquals(await jobs[0]!.ack(), false);
    assertEquals(await again.ack(), true);
  });

  testStore(harness, "queue.ackBatch() lands no claim that has lapsed", async (store) => {
    const short = store.queue("q", { visibility: SHORT });
    await short.enqueue("short");
    await store.queue("q").enqueue("long");
    const jobs = await short.claimBatch("worker", 2);
    await passed(SHORT);
    assertEquals(await short.ackBatch(jobs), [jobs[1]!.id]);
    assertEquals((await short.getJob(jobs[0]!.id))?.state, "ready");
  });

  testStore(harness, "queue.ackBatch() of no jobs gives no ids", async (store) => {
    assertEquals(await store.queue("q").ackBatch([]), []);
  });

  testDatabase(
    harness,
    "queue.ackBatch() refuses a job of another queue or store and acks none",
    async (database) => {
      const [store, other] = [await database.open(), await database.open()];
      const queue = store.queue<number>("q");
      await queue.enqueueMany([1, 2]);
      await store.queue<number>("elsewhere").enqueue(3);
      const own = await claim(queue);
      const strangers = [
        await claim(store.queue<number>("elsewhere")),
        await claim(other.queue<number>("q")),
        { id: own.id } as Job<number>,
      ];
      for (const stranger of strangers) {
        await assertRejects(() => queue.ackBatch([own, stranger]), TypeError, `queue "q"`);
      }
      assertEquals(await own.ack(), true);
    },
  );
}
