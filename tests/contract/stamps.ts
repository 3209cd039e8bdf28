import { assert, assertEquals } from "@std/assert";
import type { EnqueueOpts, JobSnapshot, Queue, QueueOpts, Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { fromJavaScript } from "./refusals.ts";

/** The last instant of the year 9999. */
const LAST = new Date(253_402_300_799_999);

/** A way into a queue that has settings of its own. */
const WAYS: Readonly<
  Record<string, (store: Store<unknown>, queue: Queue, opts: EnqueueOpts) => Promise<number>>
> = {
  "queue.enqueue()": (_, queue, opts) => queue.enqueue("x", opts),
  "queue.enqueueMany()": async (_, queue, opts) => (await queue.enqueueMany(["x"], opts))[0]!,
  "tx.enqueueTx()": (store, queue, opts) =>
    store.transaction((tx) => tx.enqueueTx(queue, opts, "x")),
  "tx.enqueueManyTx()": async (store, queue, opts) =>
    (await store.transaction((tx) => tx.enqueueManyTx(queue, opts, ["x"])))[0]!,
};

/** A way into an outbox, whose settings are pinned. */
const OUTBOX_WAYS: Readonly<
  Record<string, (store: Store<unknown>, opts: EnqueueOpts) => Promise<number>>
> = {
  "outbox.enqueue()": (store, opts) => store.outbox("mail").enqueue("x", opts),
  "tx.outboxEnqueueTx()": (store, opts) =>
    store.transaction((tx) => tx.outboxEnqueueTx(store.outbox("mail"), opts, "x")),
  "tx.outboxEnqueueTx() by name": (store, opts) =>
    store.transaction((tx) => tx.outboxEnqueueTx("mail", opts, "x")),
};

/** Options end up on the row, where `getJob` shows the winner (C85); numbers stay exact (C55). */
export function stamps(harness: Harness): void {
  for (const [call, enqueue] of Object.entries(WAYS)) {
    stampsQueueOptions(harness, call, enqueue);
    stampsJobOptions(harness, call, enqueue);
  }
  for (const [call, enqueue] of Object.entries(OUTBOX_WAYS)) {
    stampsOutboxOptions(harness, call, enqueue);
  }

  testStore(harness, "a claimed job carries its stamp", async (store) => {
    const queue = store.queue("jobs");
    const id = await queue.enqueue("x", { priority: -7, maxAttempts: 1, expires: 600_000 });
    const snapshot = await queue.getJob(id);
    const job = await queue.claimOne("worker");
    assertEquals(
      [job?.id, job?.queue, job?.worker, job?.attempt, job?.maxAttempts, job?.lastAttempt],
      [id, "jobs", "worker", 1, 1, true],
    );
    assertEquals(
      [job?.priority, job?.runAt, job?.createdAt, job?.expiresAt, job?.lastError],
      [-7, snapshot?.runAt, snapshot?.createdAt, snapshot?.expiresAt, undefined],
    );
  });

  for (
    const [what, runAt] of Object.entries({
      "2100": new Date("2100-01-01T00:00:00.123Z"),
      "2262": new Date("2262-04-12T00:00:00.001Z"),
      "9999": LAST,
    })
  ) {
    testStore(harness, `a job due in ${what} is scheduled for that millisecond`, async (store) => {
      const queue = store.queue("jobs");
      const id = await queue.enqueue("later", { runAt });
      await queue.enqueue("now");
      const snapshot = await queue.getJob(id);
      assertEquals([snapshot?.state, snapshot?.runAt], ["scheduled", runAt]);
      const jobs = await queue.claimBatch("worker", 10);
      assertEquals(jobs.map((job) => job.payload), ["now"]);
    });
  }

  testStore(harness, "a job due in the past is ready, however long ago", async (store) => {
    const queue = store.queue("jobs");
    const past = [new Date(-1), new Date(0), new Date("1900-01-01T00:00:00.001Z")];
    const ids: number[] = [];
    for (const runAt of past) ids.push(await queue.enqueue("x", { runAt }));
    const jobs = await queue.claimBatch("worker", 10);
    const dueAt = new Map(jobs.map((job) => [job.id, job.runAt]));
    assertEquals(ids.map((id) => dueAt.get(id)), past);
  });

  testStore(harness, "instants of rows are those of today", async (store) => {
    const start = Date.now() - 60_000;
    const job = await store.queue("jobs").getJob(await store.queue("jobs").enqueue(1));
    const offset = await store.stream("orders").publish(1);
    const [event] = await store.stream("orders").readSince(offset - 1, 1);
    const lock = await store.tryLock("lock", "owner", 120_000);
    for (const at of [job?.createdAt, job?.runAt, event?.createdAt, lock?.expiresAt]) {
      assert(
        at instanceof Date && at.getTime() > start && at.getTime() < start + 400_000,
        String(at),
      );
    }
  });

  testStore(harness, "the largest ids and offsets are numbers like others", async (store) => {
    const most = Number.MAX_SAFE_INTEGER;
    const [queue, stream] = [store.queue("jobs"), store.stream("orders")];
    const id = await queue.enqueue(1);
    const offset = await stream.publish(1);
    assert(Number.isSafeInteger(id) && id > 0 && Number.isSafeInteger(offset) && offset > 0);
    assertEquals(await queue.getJob(most), undefined);
    assertEquals([await queue.cancel(most), await queue.requeue(most)], [false, false]);
    assertEquals(await queue.deadJobs({ after: most, limit: most }), []);
    assertEquals(await stream.readSince(most, most), []);
    assertEquals((await stream.readSince(0, most)).length, 1);
    assertEquals((await queue.claimBatch("worker", most)).length, 1);
    assertEquals(await store.transaction((tx) => tx.cancelTx("jobs", most)), false);
    assertEquals(await stream.trimTo(most), 1);
  });

  testStore(harness, "a retry lands at the cap, however steep the curve", async (store) => {
    const backoff = { base: 1e9, cap: 1e11, jitter: 0 };
    const queue = store.queue("jobs", { backoff, maxAttempts: 1_000_000 });
    const id = await queue.enqueue("x");
    for (let attempt = 1; attempt <= 12; attempt++) {
      const job = await queue.claimOne("worker");
      assertEquals(await job?.retry(attempt < 12 ? { delay: 0 } : {}), true);
    }
    const snapshot = await queue.getJob(id);
    assertEquals([snapshot?.state, snapshot?.attempts], ["scheduled", 12]);
    const wait = (snapshot?.runAt.getTime() ?? 0) - Date.now();
    assert(wait > 1e11 - 60_000 && wait <= 1e11, `a wait of ${wait} ms`);
  });

  // Never "not stored": names are not registered anywhere (C84).
  testStore(harness, "names work at first use", async (store) => {
    const id = await store.queue("new").enqueue("job");
    assertEquals((await store.queue("new").claimOne("worker"))?.id, id);
    assert(await store.outbox("new").enqueue("message") > 0);
    assertEquals(await store.outbox("new").runOnce("worker", () => {}), true);
    assertEquals(await store.stream("new").readSince(await store.stream("new").publish(1), 1), []);
    assertEquals(await store.stream("new").getOffset("new"), 0);
    const ids = await store.transaction(async (tx) => [
      await tx.enqueueTx("newer", {}, "job"),
      await tx.outboxEnqueueTx("newer", {}, "message"),
    ]);
    assertEquals((await store.queue("newer").claimOne("worker"))?.id, ids[0]);
    assertEquals((await store.outbox("newer").getJob(ids[1]!))?.state, "ready");
  });

  testStore(harness, "what was never used is empty", async (store) => {
    const [queue, stream, outbox] = [store.queue("no"), store.stream("no"), store.outbox("no")];
    assertEquals(await queue.claimOne("worker"), undefined);
    assertEquals(await queue.claimBatch("worker", 10), []);
    assertEquals(await queue.getJob(1), undefined);
    assertEquals(await queue.deadJobs(), []);
    assertEquals([await queue.sweepExpired(), await queue.purgeDead()], [0, 0]);
    const none = { ready: 0, scheduled: 0, claimed: 0, dead: 0, oldestReadyAt: undefined };
    assertEquals([await queue.stats(), await outbox.stats()], [none, none]);
    assertEquals(await outbox.runOnce("worker", () => {}), false);
    assertEquals(await stream.readSince(0, 10), []);
    assertEquals(await stream.info(), { head: 0, first: undefined, consumers: [] });
    assertEquals([await stream.trimTo(10), await stream.dropConsumer("c")], [0, false]);
    assertEquals([await queue.enqueueMany([]), await queue.ackBatch([])], [[], []]);
    assertEquals(await stream.publishMany([]), []);
  });
}

type Enqueue = (store: Store<unknown>, queue: Queue, opts: EnqueueOpts) => Promise<number>;

function stampsQueueOptions(harness: Harness, call: string, enqueue: Enqueue): void {
  testStore(harness, `${call} stamps the defaults where nothing is set`, async (store) => {
    // `undefined` is nothing, too.
    const unset: QueueOpts = fromJavaScript({ visibility: undefined, maxAttempts: undefined });
    const none: EnqueueOpts = fromJavaScript({ delay: undefined, runAt: undefined });
    for (const opts of [undefined, {}, unset]) {
      for (const job of [{}, none, fromJavaScript(undefined)]) {
        const queue = store.queue("jobs", opts);
        assertDefaults(await queue.getJob(await enqueue(store, queue, job)));
      }
    }
  });

  testStore(harness, `${call} stamps the settings of its queue`, async (store) => {
    const backoff = { kind: "linear", base: 1_000, cap: 9_000, jitter: 0.5 } as const;
    const queue = store.queue("jobs", { visibility: 1_234, maxAttempts: 9, backoff });
    const job = await queue.getJob(await enqueue(store, queue, {}));
    assertEquals([job?.visibility, job?.maxAttempts, job?.backoff], [1_234, 9, backoff]);

    for (
      const [given, stamped] of [
        [7, { kind: "exponential", base: 7, cap: 3_600_000, jitter: 0.1 }],
        [{}, { kind: "exponential", base: 5_000, cap: 3_600_000, jitter: 0.1 }],
        [{ kind: "constant" }, { kind: "constant", base: 5_000, cap: 3_600_000, jitter: 0.1 }],
        [{ cap: 10 }, { kind: "exponential", base: 5_000, cap: 10, jitter: 0.1 }],
        [{ base: 0, jitter: 1 }, { kind: "exponential", base: 0, cap: 3_600_000, jitter: 1 }],
      ] as const
    ) {
      const other = store.queue("jobs", { backoff: given });
      const snapshot = await other.getJob(await enqueue(store, other, {}));
      assertEquals(snapshot?.backoff, { ...stamped });
    }
  });
}

function stampsJobOptions(harness: Harness, call: string, enqueue: Enqueue): void {
  testStore(harness, `${call} lays the job's options over those of its queue`, async (store) => {
    const queue = store.queue("jobs", { visibility: 1_234, maxAttempts: 9, backoff: 7 });
    const id = await enqueue(store, queue, {
      delay: 60_000,
      priority: 3,
      maxAttempts: 2,
      expires: 90_000,
    });
    const job = await queue.getJob(id);
    assertEquals([job?.state, job?.priority, job?.maxAttempts], ["scheduled", 3, 2]);
    assertEquals([job?.visibility, job?.backoff.base], [1_234, 7]);
    const other = await queue.getJob(await enqueue(store, queue, { priority: -3 }));
    assertEquals([other?.priority, other?.maxAttempts, other?.state], [-3, 9, "ready"]);
    assertEquals([sinceCreated(job, job?.runAt), sinceCreated(job, job?.expiresAt)], [
      60_000,
      90_000,
    ]);
  });

  testStore(harness, `${call} takes every value at the edge`, async (store) => {
    const queue = store.queue("jobs");
    const read = async (opts: EnqueueOpts) => await queue.getJob(await enqueue(store, queue, opts));
    const runAt = new Date("2100-01-01T00:00:00.123Z");
    assertEquals((await read({ runAt }))?.runAt, runAt);
    assertEquals((await read({ runAt: LAST }))?.runAt, LAST);
    assertEquals((await read({ runAt: new Date(0), expires: 1_000 }))?.runAt, new Date(0));
    for (const priority of [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1]) {
      assertEquals((await read({ priority }))?.priority, priority);
    }
    for (const maxAttempts of [1, 1_000_000, Number.MAX_SAFE_INTEGER]) {
      assertEquals((await read({ maxAttempts }))?.maxAttempts, maxAttempts);
    }
    const century = 100 * 365 * 86_400_000;
    const late = await read({ delay: century, expires: century + 1 });
    assertEquals(sinceCreated(late, late?.runAt), century);
    assertEquals(sinceCreated(late, late?.expiresAt), century + 1);
    assertEquals((await read({ delay: 0 }))?.state, "ready");
  });
}

function stampsOutboxOptions(
  harness: Harness,
  call: string,
  enqueue: (store: Store<unknown>, opts: EnqueueOpts) => Promise<number>,
): void {
  testStore(harness, `${call} stamps what ADR-014 pins`, async (store) => {
    const job = await store.outbox("mail").getJob(await enqueue(store, {}));
    assertEquals([job?.queue, job?.state], ["mail", "ready"]);
    assertEquals([job?.visibility, job?.maxAttempts, job?.priority], [60_000, 5, 0]);
    assertEquals(job?.backoff, { kind: "exponential", base: 5_000, cap: 3_600_000, jitter: 0 });
    assertEquals(job?.expiresAt, undefined);
    assertEquals(sinceCreated(job, job?.runAt), 0);
  });

  testStore(harness, `${call} lays the message's options over that`, async (store) => {
    const opts = { delay: 60_000, priority: 3, maxAttempts: 2, expires: 90_000 };
    const job = await store.outbox("mail").getJob(await enqueue(store, opts));
    assertEquals([job?.state, job?.priority, job?.maxAttempts], ["scheduled", 3, 2]);
    assertEquals([job?.visibility, job?.backoff.jitter], [60_000, 0]);
    assertEquals([sinceCreated(job, job?.runAt), sinceCreated(job, job?.expiresAt)], [
      60_000,
      90_000,
    ]);
  });
}

function assertDefaults(job: JobSnapshot | undefined): void {
  assertEquals([job?.state, job?.priority, job?.attempts], ["ready", 0, 0]);
  assertEquals([job?.visibility, job?.maxAttempts], [60_000, 5]);
  assertEquals(job?.backoff, { kind: "exponential", base: 5_000, cap: 3_600_000, jitter: 0.1 });
  assertEquals(sinceCreated(job, job?.runAt), 0);
  assertEquals([job?.expiresAt, job?.lastError, job?.reason, job?.diedAt], [
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  assertEquals([job?.worker, job?.leaseUntil], [undefined, undefined]);
}

function sinceCreated(job: JobSnapshot | undefined, at: Date | undefined): number | undefined {
  return job === undefined || at === undefined ? undefined : at.getTime() - job.createdAt.getTime();
}
