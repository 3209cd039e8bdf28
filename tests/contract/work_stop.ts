import { assert, assertEquals } from "@std/assert";
import type { Job, Store, WorkerHandle, WorkOptions } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { abortReason, claim, eventsOf, LONG, ofType, whileHeld } from "./queue_jobs.ts";
import { soon, until } from "./wait.ts";

/** A worker in the middle of its first job, which ends when `end` is called. */
interface Busy {
  readonly worker: WorkerHandle;
  readonly job: Job<string>;
  readonly end: () => void;
  /** Whether the handler has ended. */
  readonly hasEnded: () => boolean;
  /** The payloads handlers were started with. */
  readonly started: string[];
}

/** Starts a worker and gives it a job and a second one it has no hand for. */
async function busyWorker(store: Store<unknown>, options?: WorkOptions): Promise<Busy> {
  const queue = store.queue<string>("q", { visibility: LONG, maxAttempts: 1 });
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<Job<string>>();
  const started: string[] = [];
  let isEnded = false;
  const worker = queue.work(async (job: Job<string>) => {
    started.push(job.payload);
    begun.resolve(job);
    await gate.promise;
    isEnded = true;
  }, options);
  await queue.enqueueMany(["first", "second"]);
  const job = await soon(begun.promise);
  return { worker, job, end: gate.resolve, hasEnded: () => isEnded, started };
}

/** The ways a worker is told to stop, giving its handlers the time they need. */
const STOPS: readonly [
  name: string,
  stop: (busy: Busy, store: Store<unknown>, controller: AbortController) => Promise<void>,
][] = [
  ["worker.stop()", ({ worker }) => worker.stop()],
  ["worker.stop({ drain: Infinity })", ({ worker }) => worker.stop({ drain: Infinity })],
  ["an aborted signal", ({ worker }, _, controller) => {
    controller.abort();
    return worker.done;
  }],
  ["disposing the worker", async ({ worker }) => await worker[Symbol.asyncDispose]()],
  ["store.drain()", (_, store) => store.drain()],
  ["store.close({ drain })", (_, store) => store.close({ drain: LONG })],
];

/** The ways a worker is told to stop although its handler does not end. */
const HASTY: readonly [
  name: string,
  stop: (busy: Busy, store: Store<unknown>) => Promise<void>,
][] = [
  ["worker.stop({ drain: 0 })", ({ worker }) => worker.stop({ drain: 0 })],
  ["worker.stop({ drain: 50 })", ({ worker }) => worker.stop({ drain: 50 })],
  ["store.close({ drain: 0 })", (_, store) => store.close({ drain: 0 })],
  ["store.close({ drain: 50 })", (_, store) => store.close({ drain: 50 })],
];

/** How workers end, and what becomes of their jobs. */
export function workStop(harness: Harness): void {
  for (const [name, stop] of STOPS) {
    testDatabase(
      harness,
      `${name} resolves once the running handler is done and acked`,
      async (database) => {
        const [store, witness] = [await database.open(), await database.open()];
        const controller = new AbortController();
        const busy = await busyWorker(store, { signal: controller.signal });
        const stopping = stop(busy, store, controller);
        // A round trip later it still waits: the handler has not ended.
        assertEquals((await witness.queue("q").getJob(busy.job.id))?.state, "claimed");
        assertEquals(busy.job.signal.aborted, false);
        busy.end();
        await soon(stopping);
        assert(busy.hasEnded());
        assertEquals(await witness.queue("q").getJob(busy.job.id), undefined);
        assertEquals(busy.started, ["first"]);
        assertEquals((await claim(witness.queue("q"))).payload, "second");
      },
    );
  }

  for (const [name, stop] of HASTY) {
    testDatabase(
      harness,
      `${name} gives the job back at once, its attempt not spent`,
      async (database) => {
        const [store, witness] = [await database.open(), await database.open()];
        const busy = await busyWorker(store);
        const { signal } = busy.job;
        await soon(stop(busy, store));
        assertEquals(busy.hasEnded(), false);
        assertEquals((await abortReason(signal)).reason, "shutdown");
        const snapshot = await witness.queue("q").getJob(busy.job.id);
        assertEquals([snapshot?.state, snapshot?.attempts], ["ready", 0]);
        assertEquals(snapshot?.lastError, undefined);
        const again = await claim(witness.queue("q"));
        assertEquals([again.payload, again.attempt], ["first", 1]);
        busy.end();
        await busy.worker.done;
        assertEquals(await again.ack(), true);
      },
    );

    testDatabase(
      harness,
      `${name} adds nothing for a handler that throws its abort`,
      async (database) => {
        const [store, witness] = [await database.open(), await database.open()];
        const queue = store.queue<string>("q", { maxAttempts: 1 });
        const ended = Promise.withResolvers<void>();
        const begun = Promise.withResolvers<Job<string>>();
        const worker = queue.work(async (job: Job<string>) => {
          begun.resolve(job);
          await abortReason(job.signal);
          ended.resolve();
          throw job.signal.reason;
        });
        await queue.enqueue("first");
        const job = await soon(begun.promise);
        await stop({ worker, job, end: () => {}, hasEnded: () => false, started: [] }, store);
        await soon(ended.promise);
        await worker.done;
        const snapshot = await witness.queue("q").getJob(job.id);
        assertEquals([snapshot?.state, snapshot?.attempts], ["ready", 0]);
        assertEquals(snapshot?.lastError, undefined);
      },
    );
  }

  testStore(
    harness,
    "worker.stop() releases claims whose handlers have not started",
    async (store) => {
      const queue = store.queue<number>("q");
      let runs = 0;
      const worker = queue.work(() => void runs++, { concurrency: 5 });
      let stopping: Promise<void> | undefined;
      store.onEvent((event) => {
        // The claim is made and nothing has begun.
        if (event.type === "claimed") stopping ??= worker.stop();
      });
      const ids = await queue.enqueueMany([1, 2, 3]);
      await until(() => stopping !== undefined);
      await soon(stopping!);
      assertEquals(runs, 0);
      const jobs = await queue.claimBatch("worker", 10);
      assertEquals(jobs.map((job) => [job.id, job.attempt]), ids.map((id) => [id, 1]));
    },
  );

  testDatabase(
    harness,
    "worker.stop() resolves once the jobs are given back, also when that takes a while",
    async (database) => {
      const store = await database.open();
      const queue = store.queue<string>("q");
      const begun = Promise.withResolvers<Job<string>>();
      const ended = Promise.withResolvers<void>();
      const worker = queue.work(async (job: Job<string>) => {
        begun.resolve(job);
        await abortReason(job.signal);
        ended.resolve();
      });
      await queue.enqueue("first");
      const { id } = await soon(begun.promise);
      const { stopping } = await whileHeld(database, "q", id, async () => {
        const stopping = worker.stop({ drain: 0 });
        await soon(ended.promise);
        return { stopping };
      });
      await soon(stopping);
      const job = await queue.getJob(id);
      assertEquals([job?.state, job?.attempts], ["ready", 0]);
    },
  );

  testStore(harness, "a stopped worker takes no further job", async (store) => {
    const queue = store.queue<string>("q");
    let runs = 0;
    const stopped = queue.work(() => void runs++);
    await stopped.stop();
    await queue.enqueue("it");
    const seen = Promise.withResolvers<string>();
    const worker = queue.work((job) => seen.resolve(job.payload));
    assertEquals(await soon(seen.promise), "it");
    assertEquals(runs, 0);
    await worker.stop();
  });

  testStore(harness, "a job offered to a worker that stops goes to another", async (store) => {
    // The offer is made at some point after the enqueue: stop before, at and after it.
    for (let turns = 0; turns < 30; turns++) {
      const queue = store.queue(`q ${turns}`);
      const done = Promise.withResolvers<void>();
      const workers = [queue.work(() => done.resolve()), queue.work(() => done.resolve())];
      await until(async () => (await store.status()).workers === 2);
      await queue.enqueue(1);
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      const stopping = workers[0]!.stop();
      await soon(done.promise, `the job, ${turns} turns after its enqueue,`);
      await Promise.all([stopping, workers[1]!.stop()]);
    }
  });

  testStore(harness, "worker.stop() can be called again and resolves with done", async (store) => {
    const { worker, end } = await busyWorker(store);
    const stops = [worker.stop(), worker.stop({ drain: LONG }), worker.done];
    end();
    await soon(Promise.all(stops));
    await worker.stop();
  });

  testStore(
    harness,
    "worker.stop() with less patience cuts an earlier one short",
    async (store) => {
      const { worker, job, end } = await busyWorker(store);
      const first = worker.stop({ drain: LONG });
      await soon(worker.stop({ drain: 0 }));
      await soon(first);
      assertEquals((await abortReason(job.signal)).reason, "shutdown");
      end();
    },
  );

  testStore(harness, "a worker whose signal is aborted already claims nothing", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    let runs = 0;
    const worker = queue.work(() => void runs++, { signal: AbortSignal.abort() });
    await soon(worker.done);
    assertEquals(runs, 0);
    assertEquals((await claim(queue)).attempt, 1);
  });

  testStore(harness, "store.drain() ends claims and nothing else", async (store) => {
    const queue = store.queue<string>("q");
    await queue.enqueueMany(["held", "waiting"]);
    const held = await claim(queue);
    await store.drain();
    assertEquals(await queue.claimOne("worker"), undefined);
    assertEquals(await queue.claimBatch("worker", 10), []);
    assertEquals(await store.outbox("mail").runOnce("mailer", () => {}), false);
    assertEquals(await held.heartbeat(), true);
    assertEquals(await held.ack(), true);
    await queue.enqueue("more");
    await store.notify("channel");
    await store.transaction((tx) => tx.publishTx("stream", 1));
    assertEquals((await queue.stats()).ready, 2);
    assertEquals((await store.stream("stream").readSince(0, 10)).length, 1);
    assertEquals((await store.status()).state, "draining");
    await store.drain();
  });

  testStore(
    harness,
    "a draining handler may enqueue, publish, notify and begin transactions",
    async (store) => {
      const queue = store.queue<string>("q");
      const draining = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const results: unknown[] = [];
      queue.work(async () => {
        begun.resolve();
        await draining.promise;
        results.push(await queue.claimOne("worker"));
        await queue.enqueue("later");
        await store.stream("stream").publish(1);
        await store.notify("channel");
        await store.transaction((tx) => tx.enqueueTx("q", {}, "in a transaction"));
        await (await store.beginTx()).rollback();
        results.push("all done");
      });
      await queue.enqueue("first");
      await soon(begun.promise);
      const drained = store.drain();
      draining.resolve();
      await soon(drained);
      assertEquals(results, [undefined, "all done"]);
      assertEquals((await queue.stats()).ready, 2);
      assertEquals((await queue.stats()).claimed, 0);
    },
  );

  testStore(
    harness,
    "work() after store.drain() claims nothing and can be stopped",
    async (store) => {
      await store.drain();
      await store.queue("q").enqueue(1);
      let runs = 0;
      const worker = store.queue("q").work(() => void runs++);
      await worker.stop();
      assertEquals([runs, (await store.queue("q").stats()).ready], [0, 1]);
    },
  );

  testDatabase(
    harness,
    "a store that sweeps all the time opens and closes without a fault",
    async (database) => {
      const faults: unknown[] = [];
      for (let turn = 0; turn < 50; turn++) {
        const store = await database.open({ sweepInterval: 1 });
        store.onEvent((event) => {
          if (event.type === "error") faults.push(event.error);
        });
        const worker = store.queue("q").work(() => {});
        await store.queue("q").enqueue(turn);
        await store.close();
        await worker.done;
      }
      assertEquals(faults, []);
    },
  );

  testStore(harness, "the work of a stopped worker is all acked", async (store) => {
    const queue = store.queue<number>("q");
    const events = eventsOf(store);
    let runs = 0;
    const worker = queue.work(() => void runs++, { concurrency: 10 });
    await queue.enqueueMany(Array(200).fill(0));
    await until(() => runs >= 50);
    await worker.stop();
    const acked = ofType(events, "acked").flatMap((event) => event.ids);
    const { ready, claimed, dead } = await queue.stats();
    assertEquals([acked.length, claimed, dead], [runs, 0, 0]);
    assertEquals(ready, 200 - runs);
  });
}
