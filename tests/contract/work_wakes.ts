import { assert, assertEquals } from "@std/assert";
import { delay } from "@std/async";
import type { Job, Store } from "../../mod.ts";
import { type Harness, type TestDatabase, testDatabase, testStore } from "./harness.ts";
import { claim, eventsOf, LONG, ofType, SHORT } from "./queue_jobs.ts";
import { soon, until } from "./wait.ts";

/**
 * Lets a worker have its last look at what was before and go to sleep, so that only a wake can tell it
 * of what comes. Were it slower, a test would prove less, not fail.
 */
async function quiet(): Promise<void> {
  await delay(150);
}

/** A worker that waits, with polling off, and the payloads it was given. */
async function idleWorker(store: Store<unknown>): Promise<{ seen: string[]; handled: Handled }> {
  const seen: string[] = [];
  const events = eventsOf(store);
  const queue = store.queue<string>("q");
  queue.work((job) => void seen.push(job.payload));
  // It waits for wakes once it has handled a first job and found no other.
  await queue.enqueue("warm-up");
  await until(() => ofType(events, "acked").length === 1, "the warm-up job");
  await quiet();
  seen.length = 0;
  return {
    seen,
    handled: (payload) => until(() => seen.includes(payload), `the handling of ${payload}`),
  };
}

type Handled = (payload: string) => Promise<unknown>;

/** A worker that waits while `other` holds the only job of the queue. */
async function worklessWorker(
  store: Store<unknown>,
  other: Store<unknown>,
  visibility: number,
): Promise<{ job: Job<string>; handled: Handled }> {
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const events = eventsOf(store);
  store.queue<string>("q").work(async (job) => {
    seen.push(job.payload);
    if (job.payload === "busy") await gate.promise;
  });
  await store.queue("q").enqueue("busy");
  await until(() => seen.length === 1, "the busy worker");
  await other.queue("q", { visibility }).enqueue("it");
  const job = await claim(other.queue<string>("q"));
  gate.resolve();
  await until(() => ofType(events, "acked").length === 1, "the idle worker");
  await quiet();
  return { job, handled: (payload) => until(() => seen.includes(payload), "the handling of it") };
}

/** What wakes a worker: everything that makes a job claimable, and time. */
export function workWakes(harness: Harness): void {
  const wakes: readonly [
    what: string,
    act: (other: Store<unknown>, database: TestDatabase) => Promise<unknown>,
  ][] = [
    ["an enqueue", (other) => other.queue<string>("q").enqueue("it")],
    ["an enqueue of many", (other) => other.queue<string>("q").enqueueMany(["it"])],
    ["a committed enqueue", (other) => other.transaction((tx) => tx.enqueueTx("q", {}, "it"))],
    ["a job whose delay ends", (other) => other.queue<string>("q").enqueue("it", { delay: 80 })],
    ["a job whose run time comes", (other) => {
      return other.queue<string>("q").enqueue("it", { runAt: new Date(Date.now() + 80) });
    }],
    ["an enqueue in a transaction of the application", async (other, database) => {
      const foreign = await database.beginForeign();
      const tx = await other.joinTx(foreign.connection);
      await tx.enqueueTx("q", {}, "it");
      await foreign.commit();
      await foreign.close();
    }],
  ];
  for (const [what, act] of wakes) {
    for (const where of ["its store", "another store"]) {
      testDatabase(harness, `${what} in ${where} wakes a worker`, async (database) => {
        const store = await database.open();
        const { seen, handled } = await idleWorker(store);
        await act(where === "its store" ? store : await database.open(), database);
        await handled("it");
        assertEquals(seen, ["it"]);
      });
    }
  }

  const returns: readonly [
    what: string,
    visibility: number,
    act: (job: Job<string>, other: Store<unknown>) => Promise<unknown>,
  ][] = [
    ["a release", LONG, (job) => job.release()],
    ["a retry without a delay", LONG, (job) => job.retry({ delay: 0 })],
    ["a retry with a delay", LONG, (job) => job.retry({ delay: 80 })],
    ["a retry in a transaction", LONG, (job, other) => {
      return other.transaction((tx) => tx.retryTx(job, { delay: 0 }));
    }],
    ["a lease that ends", 2 * SHORT, () => Promise.resolve()],
    ["a lease that ends after a heartbeat", 2 * SHORT, (job) => job.heartbeat(4 * SHORT)],
    ["a requeue", LONG, async (job, other) => {
      await job.fail();
      await other.queue("q").requeue(job.id);
    }],
  ];
  for (const [what, visibility, act] of returns) {
    for (const where of ["its store", "another store"]) {
      testDatabase(harness, `${what} in ${where} wakes a worker`, async (database) => {
        const store = await database.open();
        const other = where === "its store" ? store : await database.open();
        const { job, handled } = await worklessWorker(store, other, visibility);
        await act(job, other);
        await handled("it");
      });
    }
  }

  testDatabase(
    harness,
    "a worker takes over from a store that died with its claim before the worker came",
    async (database) => {
      const dead = await database.open();
      await dead.queue("q", { visibility: 2 * SHORT }).enqueue("it");
      await claim(dead.queue("q"), "pod-1");
      await dead.close();
      const store = await database.open();
      const attempt = Promise.withResolvers<number>();
      // Restarted under the name of the one that died: that alone keeps no claim alive.
      const worker = store.queue("q").work((job) => attempt.resolve(job.attempt), {
        worker: "pod-1",
      });
      assertEquals(await soon(attempt.promise), 2);
      await worker.stop();
    },
  );

  testDatabase(
    harness,
    "a worker takes over from a store that died with its claim while the worker waited",
    async (database) => {
      const [store, dead] = [await database.open(), await database.open()];
      const gate = Promise.withResolvers<void>();
      const seen: [string, number][] = [];
      const worker = store.queue<string>("q").work(async (job) => {
        seen.push([job.payload, job.attempt]);
        if (job.payload === "busy") await gate.promise;
      });
      await store.queue("q").enqueue("busy");
      await until(() => seen.length === 1);
      await dead.queue("q", { visibility: 2 * SHORT }).enqueue("it");
      await claim(dead.queue("q"));
      await dead.close();
      gate.resolve();
      await until(() => seen.length === 2);
      assertEquals(seen, [["busy", 1], ["it", 2]]);
      await worker.stop();
    },
  );

  // A pause of 100 ms before each of 60 jobs would take longer; the work itself takes a tenth of this.
  const ample = 4_000;

  testStore(harness, "a worker goes from job to job without a pause", async (store) => {
    const queue = store.queue<number>("q");
    let runs = 0;
    await queue.enqueueMany(Array(60).fill(0));
    const clock = await store.queue("clock").enqueue("tick", { delay: ample });
    const worker = queue.work(() => void runs++);
    await until(() => runs === 60);
    assertEquals((await store.queue("clock").getJob(clock))?.state, "scheduled");
    await worker.stop();
  });

  testDatabase(
    harness,
    "a worker that waits takes each new job without a pause",
    async (database) => {
      const [store, other] = [await database.open(), await database.open()];
      const queue = other.queue<number>("q");
      let runs = 0;
      const worker = store.queue("q").work(() => void runs++);
      const clock = await other.queue("clock").enqueue("tick", { delay: ample });
      for (let turn = 1; turn <= 60; turn++) {
        await queue.enqueue(turn);
        await until(() => runs === turn);
      }
      assertEquals((await other.queue("clock").getJob(clock))?.state, "scheduled");
      await worker.stop();
    },
  );

  testStore(harness, "a job is not handled before its run time", async (store) => {
    const { handled } = await idleWorker(store);
    const start = performance.now();
    await store.queue<string>("q").enqueue("it", { delay: 120 });
    await handled("it");
    // Instants are whole milliseconds.
    assert(performance.now() - start >= 118);
  });

  testStore(harness, "an earlier run time overtakes the one a worker sleeps for", async (store) => {
    const { seen, handled } = await idleWorker(store);
    const queue = store.queue<string>("q");
    await queue.enqueue("in a minute", { delay: LONG });
    await queue.enqueue("second", { delay: 150 });
    await queue.enqueue("first", { delay: 50 });
    await handled("second");
    assertEquals(seen, ["first", "second"]);
  });

  testStore(harness, "a run time beyond every timer makes no job due", async (store) => {
    const { seen, handled } = await idleWorker(store);
    const queue = store.queue<string>("q");
    const far = await queue.enqueue("in 25 days", { delay: 2 ** 31 + 1_000 });
    await queue.enqueue("in 8000 years", { runAt: new Date("9999-12-31T00:00:00Z") });
    await queue.enqueue("soon", { delay: 50 });
    await handled("soon");
    assertEquals(seen, ["soon"]);
    assertEquals((await queue.getJob(far))?.state, "scheduled");
  });

  testDatabase(harness, "a rolled-back enqueue wakes nobody for its job", async (database) => {
    const [store, other] = [await database.open(), await database.open()];
    const { seen, handled } = await idleWorker(store);
    const tx = await other.beginTx();
    await tx.enqueueTx("q", {}, "ghost");
    await tx.rollback();
    await other.queue("q").enqueue("it");
    await handled("it");
    assertEquals(seen, ["it"]);
  });

  testDatabase(harness, "an enqueue of another queue is no work for a worker", async (database) => {
    const [store, other] = [await database.open(), await database.open()];
    const { seen, handled } = await idleWorker(store);
    await other.queue("Q").enqueue("of another queue");
    await other.queue("q").enqueue("it");
    await handled("it");
    assertEquals(seen, ["it"]);
  });

  testDatabase(harness, "a worker finds what was there before it began", async (database) => {
    const producer = await database.open();
    await producer.queue("q").enqueue("it");
    const seen = Promise.withResolvers<unknown>();
    const worker = (await database.open()).queue("q").work((job) => seen.resolve(job.payload));
    assertEquals(await soon(seen.promise), "it");
    await worker.stop();
  });

  testDatabase(harness, "a worker is woken by polling alone", async (database) => {
    const store = await database.open({ push: false, poll: { min: 10, max: 20 } });
    const { handled } = await idleWorker(store);
    await (await database.open()).queue("q").enqueue("it");
    await handled("it");
  });
}
