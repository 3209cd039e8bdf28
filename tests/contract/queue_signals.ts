import { assertEquals, assertInstanceOf } from "@std/assert";
import { JobAbortError } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import {
  abortReason,
  claim,
  eventsOf,
  LONG,
  ofType,
  passed,
  SHORT,
  whileHeld,
} from "./queue_jobs.ts";
import { soon, until } from "./wait.ts";

/** How a holder hears that its claim has ended. */
export function queueSignals(harness: Harness): void {
  testStore(harness, "job.signal aborts when the lease ends", async (store) => {
    const queue = store.queue("q", { visibility: SHORT });
    await queue.enqueue(1);
    const events = eventsOf(store);
    const job = await claim(queue);
    assertEquals(job.signal.aborted, false);
    const reason = await abortReason(job.signal);
    assertInstanceOf(reason, JobAbortError);
    assertEquals([reason.reason, reason.jobId], ["lease-lost", job.id]);
    assertEquals(ofType(events, "lease-lost"), [{ type: "lease-lost", queue: "q", id: job.id }]);
  });

  testDatabase(harness, "job.signal aborts before the job can run elsewhere", async (database) => {
    const [holder, other] = [await database.open(), await database.open()];
    const queue = holder.queue("q", { visibility: 2 * SHORT, maxAttempts: 1_000 });
    await queue.enqueue(1);
    await until(async () => {
      const job = await claim(queue);
      const { signal } = job;
      const thief = await until(() => other.queue("q").claimOne("other"));
      const wasTold = signal.aborted;
      await thief.release();
      // Again, where the machine stood still while the timer was due.
      return wasTold;
    }, "an abort that comes first");
  });

  testDatabase(
    harness,
    "job.signal aborts by the holder's own clock when no call returns",
    async (database) => {
      const queue = (await database.open()).queue("q", { visibility: 2 * SHORT });
      await queue.enqueue(1);
      const job = await claim(queue);
      const { signal } = job;
      const { beat } = await whileHeld(database, "q", job.id, async () => {
        const beat = job.heartbeat();
        assertEquals((await abortReason(signal)).reason, "lease-lost");
        // It is told a little early.
        await passed(2 * SHORT);
        return { beat };
      });
      assertEquals(await soon(beat), false);
    },
  );

  testStore(harness, "job.heartbeat() moves the abort of the signal", async (store) => {
    const queue = store.queue("q", { visibility: 3 * SHORT });
    await queue.enqueueMany([1, 2]);
    const [kept, left] = [await claim(queue), await claim(queue)];
    const { signal } = kept;
    assertEquals(await kept.heartbeat(LONG), true);
    // Without the heartbeat the signal of the job claimed first would have aborted first.
    await abortReason(left.signal);
    assertEquals(signal.aborted, false);
    assertEquals(await kept.ack(), true);
  });

  testStore(harness, "job.signal does not abort once the job is finished", async (store) => {
    const queue = store.queue<string>("q", { visibility: 3 * SHORT });
    await queue.enqueueMany(["ack", "retry", "fail", "release", "ackBatch", "lapse"]);
    const jobs = await queue.claimBatch("worker", 6);
    const signals = jobs.map((job) => job.signal);
    const landed = await Promise.all([
      jobs[0]!.ack(),
      jobs[1]!.retry(),
      jobs[2]!.fail(),
      jobs[3]!.release(),
      queue.ackBatch([jobs[4]!]).then((ids) => ids.length === 1),
    ]);
    assertEquals(landed, Array(5).fill(true));
    await abortReason(signals[5]!);
    assertEquals(signals.map((signal) => signal.aborted), [...Array(5).fill(false), true]);
  });

  testStore(harness, "a signal read first after the lease has ended is aborted", async (store) => {
    const queue = store.queue<string>("q", { visibility: SHORT });
    await queue.enqueueMany(["late", "clock"]);
    const late = await claim(queue);
    await abortReason((await claim(queue)).signal);
    assertEquals((await abortReason(late.signal)).reason, "lease-lost");
  });

  testStore(harness, "job.heartbeat() aborts the signal when the claim was lost", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    const job = await claim(queue);
    const { signal } = job;
    await queue.cancel(job.id);
    assertEquals(await job.heartbeat(), false);
    assertEquals((await abortReason(signal)).reason, "cancelled");
  });

  testStore(harness, "job.heartbeat() that comes too late aborts the signal", async (store) => {
    const queue = store.queue("q", { visibility: SHORT });
    await queue.enqueue(1);
    const job = await claim(queue);
    const { signal } = job;
    // No timer can ring meanwhile.
    for (const start = performance.now(); performance.now() - start < 2 * SHORT;);
    assertEquals(await job.heartbeat(), false);
    assertEquals([signal.aborted, signal.reason?.reason], [true, "lease-lost"]);
  });

  for (const from of ["the same store", "another store"]) {
    testDatabase(
      harness,
      `queue.cancel() in ${from} aborts the holder's signal`,
      async (database) => {
        const holder = await database.open();
        const canceller = from === "the same store" ? holder : await database.open();
        const queue = holder.queue("q");
        await queue.enqueue(1);
        const events = eventsOf(holder);
        const job = await claim(queue);
        const { signal } = job;
        assertEquals(await canceller.queue("q").cancel(job.id), true);
        const reason = await abortReason(signal);
        assertInstanceOf(reason, JobAbortError);
        assertEquals([reason.reason, reason.jobId], ["cancelled", job.id]);
        assertEquals(ofType(events, "lease-lost"), [{
          type: "lease-lost",
          queue: "q",
          id: job.id,
        }]);
      },
    );
  }

  testDatabase(
    harness,
    "tx.cancelTx() aborts the holder's signal with its commit",
    async (database) => {
      const [holder, canceller] = [await database.open(), await database.open()];
      const queue = holder.queue<string>("q", { visibility: LONG });
      await queue.enqueueMany(["kept", "cancelled"]);
      const [kept, cancelled] = [await claim(queue), await claim(queue)];
      const signals = [kept.signal, cancelled.signal] as const;
      const tx = await canceller.beginTx();
      await tx.cancelTx("q", kept.id);
      await tx.rollback();
      await canceller.transaction((tx) => tx.cancelTx("q", cancelled.id));
      assertEquals((await abortReason(signals[1])).reason, "cancelled");
      assertEquals(signals[0].aborted, false);
      assertEquals(await kept.ack(), true);
    },
  );

  testDatabase(
    harness,
    "queue.cancel() of one job leaves the other claims alone",
    async (database) => {
      const [holder, canceller] = [await database.open(), await database.open()];
      const queue = holder.queue("q");
      await queue.enqueueMany([1, 2, 3]);
      const jobs = await queue.claimBatch("worker", 3);
      const signals = jobs.map((job) => job.signal);
      await canceller.queue("q").cancel(jobs[1]!.id);
      await abortReason(signals[1]!);
      assertEquals(signals.map((signal) => signal.aborted), [false, true, false]);
      assertEquals(await queue.ackBatch(jobs), [jobs[0]!.id, jobs[2]!.id]);
    },
  );

  for (const others of [0, 1]) {
    const beside = others === 0 ? "the only one" : "one of several";
    testStore(
      harness,
      `a signal read first after its job, ${beside} held, was cancelled is aborted`,
      async (store) => {
        const queue = store.queue<number>("q");
        await queue.enqueueMany(Array(others + 1).fill(0));
        const [job, other] = await queue.claimBatch("worker", 2);
        assertEquals(other?.signal.aborted, others === 0 ? undefined : false);
        await queue.cancel(job!.id);
        // What tells the holders of a cancel is over.
        await passed(SHORT);
        assertEquals((await abortReason(job!.signal)).reason, "cancelled");
      },
    );
  }

  testDatabase(harness, "a cancel reaches the holder by polling alone", async (database) => {
    const holder = await database.open({ push: false, poll: { min: 10, max: 20 } });
    const canceller = await database.open({ push: false });
    const queue = holder.queue("q");
    await queue.enqueue(1);
    const { id, signal } = await claim(queue);
    await canceller.queue("q").cancel(id);
    assertEquals((await abortReason(signal)).reason, "cancelled");
  });

  testDatabase(
    harness,
    "store.close() aborts the signals of claims still held",
    async (database) => {
      const store = await database.open();
      const queue = store.queue("q");
      await queue.enqueue(1);
      const { signal } = await claim(queue);
      await store.close();
      assertEquals((await abortReason(signal)).reason, "shutdown");
    },
  );
}
