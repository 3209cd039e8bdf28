import { assertEquals, assertInstanceOf } from "@std/assert";
import { DatabaseError, type Job, type Queue, type Store, type WorkerHandle } from "../../mod.ts";
import { type Harness, testDatabase } from "./harness.ts";
import { eventsOf, LONG, ofType, whileHeld } from "./queue_jobs.ts";
import { soon, until } from "./wait.ts";

/** A worker in the middle of a job; what its handler does next is up to the test. */
async function busyWorker(store: Store<unknown>): Promise<{
  queue: Queue<string>;
  worker: WorkerHandle;
  job: Job<string>;
  runs: string[];
  gate: PromiseWithResolvers<void>;
}> {
  const queue = store.queue<string>("q", { backoff: { base: LONG, jitter: 0 } });
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<Job<string>>();
  const runs: string[] = [];
  const worker = queue.work(async (job) => {
    runs.push(job.payload);
    begun.resolve(job);
    if (job.payload === "first") await gate.promise;
  });
  await queue.enqueue("first");
  return { queue, worker, job: await soon(begun.promise), runs, gate };
}

/** Workers go on when the database does. */
export function workOutages(harness: Harness): void {
  testDatabase(harness, "an ack that fails on the database is made again", async (database) => {
    const store = await database.open({ writerTimeout: 30 });
    const { queue, worker, job, runs, gate } = await busyWorker(store);
    const events = eventsOf(store);
    await whileHeld(database, "q", job.id, async () => {
      gate.resolve();
      await until(() => ofType(events, "error").length > 0, "a failed ack");
      assertEquals(ofType(events, "acked"), []);
    });
    await until(() => ofType(events, "acked").length === 1);
    await queue.enqueue("second");
    await until(() => ofType(events, "acked").length === 2);
    assertEquals(runs, ["first", "second"]);
    assertEquals(ofType(events, "lease-lost"), []);
    await worker.stop();
  });

  testDatabase(
    harness,
    "an ack of the handler that fails is made by the worker",
    async (database) => {
      const store = await database.open({ writerTimeout: 30 });
      const queue = store.queue("q");
      const events = eventsOf(store);
      const gate = Promise.withResolvers<void>();
      const failed = Promise.withResolvers<unknown>();
      const worker = queue.work(async (job) => {
        await gate.promise;
        await job.ack().catch(failed.resolve);
      });
      const id = await queue.enqueue(1);
      await until(() => ofType(events, "claimed").length === 1);
      await whileHeld(database, "q", id, async () => {
        gate.resolve();
        assertInstanceOf(await soon(failed.promise), DatabaseError);
      });
      await until(() => ofType(events, "acked").length === 1);
      assertEquals(await queue.getJob(id), undefined);
      await worker.stop();
    },
  );

  testDatabase(harness, "a retry that fails on the database is made again", async (database) => {
    const store = await database.open({ writerTimeout: 30 });
    const { queue, worker, job, gate } = await busyWorker(store);
    const events = eventsOf(store);
    await whileHeld(database, "q", job.id, async () => {
      gate.reject(new Error("no route"));
      await until(() => ofType(events, "error").length > 0, "a failed retry");
    });
    await until(() => ofType(events, "retried").length === 1);
    const snapshot = await queue.getJob(job.id);
    assertEquals([snapshot?.state, snapshot?.attempts], ["scheduled", 1]);
    assertEquals(snapshot?.lastError, "Error: no route");
    await worker.stop();
  });

  testDatabase(harness, "a claim that fails on the database is made again", async (database) => {
    const store = await database.open({ writerTimeout: 30 });
    const queue = store.queue<string>("q");
    const events = eventsOf(store);
    const seen: string[] = [];
    const worker = queue.work((job) => void seen.push(job.payload));
    await queue.enqueue("warm-up");
    await until(() => ofType(events, "acked").length === 1);
    const id = await queue.enqueue("it", { delay: 80 });
    await whileHeld(database, "q", id, async () => {
      // Where others may claim meanwhile, a row that is held is passed over without a fault.
      if (harness.traits.concurrentTransactions) return;
      await until(() => ofType(events, "error").length > 0, "a failed claim");
      assertEquals(seen, ["warm-up"]);
    });
    await until(() => seen.length === 2);
    assertEquals(seen, ["warm-up", "it"]);
    await worker.stop();
  });

  testDatabase(
    harness,
    "worker.stop() ends although the database takes no write",
    async (database) => {
      const store = await database.open({ writerTimeout: 30 });
      const { queue, worker, job, gate } = await busyWorker(store);
      await whileHeld(database, "q", job.id, async () => {
        gate.resolve();
        await soon(worker.stop({ drain: 20 }));
      });
      // Its ack or its release is lost: the lease will tell.
      assertEquals((await queue.getJob(job.id))?.state, "claimed");
      assertEquals((await store.status()).workers, 0);
    },
  );

  testDatabase(
    harness,
    "a handler is not told of faults its worker rides out",
    async (database) => {
      const store = await database.open({ writerTimeout: 30 });
      const { worker, job, gate } = await busyWorker(store);
      const events = eventsOf(store);
      const { signal } = job;
      await whileHeld(database, "q", job.id, async () => {
        gate.resolve();
        await until(() => ofType(events, "error").length > 0, "a failed ack");
      });
      await until(() => ofType(events, "acked").length === 1);
      assertEquals(signal.aborted, false);
      await worker.stop();
    },
  );
}
