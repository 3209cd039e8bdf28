import { assert, assertEquals } from "@std/assert";
import { delay } from "@std/async";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { abortReason, eventsOf, LONG, ofType } from "./queue_jobs.ts";
import { soon, until } from "./wait.ts";

/** What a worker does for each job. */
export function work(harness: Harness): void {
  testStore(harness, "queue.work() acks a job when its handler resolves", async (store) => {
    const queue = store.queue<string>("q");
    const events = eventsOf(store);
    const id = await queue.enqueue("hello");
    const seen: unknown[] = [];
    const worker = queue.work(async (job) => {
      seen.push([job.id, job.payload, job.attempt, job.worker]);
      await delay(1);
    }, { worker: "pod-1" });
    await until(() => ofType(events, "acked").length === 1);
    assertEquals(await queue.getJob(id), undefined);
    assertEquals(seen, [[id, "hello", 1, "pod-1"]]);
    assertEquals(ofType(events, "acked"), [{ type: "acked", queue: "q", ids: [id] }]);
    await worker.stop();
  });

  testStore(harness, "queue.work() does not ack before the handler resolves", async (store) => {
    const queue = store.queue("q");
    const id = await queue.enqueue(1);
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const worker = queue.work(() => {
      started.resolve();
      return gate.promise;
    });
    await soon(started.promise);
    // A call that commits after the handler began would have seen an ack sent before it.
    await queue.enqueue(2, { delay: LONG });
    assertEquals((await queue.getJob(id))?.state, "claimed");
    gate.resolve();
    await until(async () => await queue.getJob(id) === undefined);
    await worker.stop();
  });

  const failures: readonly [how: string, handler: () => unknown, text: string | undefined][] = [
    ["throws", () => {
      throw new TypeError("no route");
    }, "TypeError: no route"],
    ["rejects", () => Promise.reject(new Error("no route")), "Error: no route"],
    ["rejects with a string", () => Promise.reject("no route"), "no route"],
    ["rejects with nothing", () => Promise.reject(undefined), undefined],
  ];
  for (const [how, handler, text] of failures) {
    testStore(harness, `queue.work() retries a job whose handler ${how}`, async (store) => {
      const queue = store.queue("q", { backoff: { base: LONG, jitter: 0 } });
      const events = eventsOf(store);
      const id = await queue.enqueue(1);
      const worker = queue.work(handler);
      await until(async () => (await queue.getJob(id))?.state === "scheduled");
      const job = await queue.getJob(id);
      assertEquals([job?.attempts, job?.lastError], [1, text]);
      assertEquals(ofType(events, "retried"), [
        { type: "retried", queue: "q", id, delay: LONG, error: text },
      ]);
      await worker.stop();
    });
  }

  testStore(
    harness,
    "a job whose handler always throws is dead after its attempts",
    async (store) => {
      const queue = store.queue("q", { backoff: 1, maxAttempts: 3 });
      const events = eventsOf(store);
      const id = await queue.enqueue(1);
      const attempts: [number, boolean, string | undefined][] = [];
      const worker = queue.work((job) => {
        attempts.push([job.attempt, job.lastAttempt, job.lastError]);
        throw new Error(`failure ${job.attempt}`);
      });
      await until(() => ofType(events, "dead").length === 1);
      assertEquals(attempts, [
        [1, false, undefined],
        [2, false, "Error: failure 1"],
        [3, true, "Error: failure 2"],
      ]);
      const dead = await queue.getJob(id);
      assertEquals([dead?.state, dead?.reason], ["dead", "exhausted"]);
      assertEquals(dead?.lastError, "Error: failure 3");
      assertEquals(ofType(events, "dead")[0]?.id, id);
      await worker.stop();
    },
  );

  for (const ending of ["ack", "retry", "fail", "release"] as const) {
    for (const isThrowing of [false, true]) {
      const then = isThrowing ? "throws" : "resolves";
      testStore(
        harness,
        `queue.work() adds nothing when the handler calls ${ending}() and ${then}`,
        async (store) => {
          const queue = store.queue<string>("q", { backoff: LONG });
          const id = await queue.enqueue("finished by its handler");
          await queue.enqueue("the next", { priority: -1 });
          const events = eventsOf(store);
          const next = Promise.withResolvers<void>();
          const worker = queue.work(async (job) => {
            if (job.payload === "the next") return next.resolve();
            assertEquals(await job[ending](), true);
            // What was given back must not come again.
            await queue.cancel(id);
            if (isThrowing) throw new Error("after the end");
          });
          await soon(next.promise);
          await worker.stop();
          const told = events.filter((event) =>
            "ids" in event ? event.ids.includes(id) : "id" in event && event.id === id
          );
          const expected = { ack: ["acked"], release: [], retry: ["retried"], fail: ["dead"] };
          assertEquals(told.map((event) => event.type), ["claimed", ...expected[ending]]);
        },
      );
    }
  }

  testStore(harness, "queue.work() leaves a job its handler has failed", async (store) => {
    const queue = store.queue<string>("q");
    const id = await queue.enqueue("broken");
    const worker = queue.work(async (job) => void await job.fail("its own reason"));
    await until(async () => (await queue.getJob(id))?.state === "dead");
    await worker.stop();
    const job = await queue.getJob(id);
    assertEquals([job?.reason, job?.lastError], ["failed", "its own reason"]);
  });

  testDatabase(harness, "queue.work() keeps the claim of a long handler", async (database) => {
    const [store, thief] = [await database.open(), await database.open()];
    const visibility = 500;
    const queue = store.queue("q", { visibility });
    const id = await queue.enqueue(1);
    const events = eventsOf(store);
    let stolen = 0;
    const worker = queue.work(async (job) => {
      const end = (await queue.getJob(id))!.leaseUntil!.getTime();
      // Until heartbeats have carried the lease to more than twice what it was.
      await until(async () => {
        if (await thief.queue("q").claimOne("thief") !== undefined) stolen++;
        const now = (await queue.getJob(id))?.leaseUntil?.getTime() ?? 0;
        return now > end + visibility;
      });
      assertEquals(job.signal.aborted, false);
    });
    await until(() => ofType(events, "acked").length === 1);
    assertEquals([stolen, ofType(events, "claimed").length], [0, 1]);
    await worker.stop();
  });

  testStore(
    harness,
    "queue.work() runs one handler at a time unless told otherwise",
    async (store) => {
      const queue = store.queue<number>("q");
      const ids = await queue.enqueueMany([1, 2, 3, 4, 5, 6]);
      let running = 0;
      const seen: number[] = [];
      const worker = queue.work(async (job) => {
        running++;
        assertEquals(running, 1);
        await delay(1);
        seen.push(job.id);
        running--;
      });
      await until(() => seen.length === 6);
      assertEquals(seen, ids);
      await worker.stop();
    },
  );

  testStore(harness, "queue.work() runs as many handlers as its concurrency", async (store) => {
    const queue = store.queue<number>("q");
    const ids = await queue.enqueueMany([1, 2, 3, 4, 5, 6, 7, 8]);
    const events = eventsOf(store);
    const gate = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    const worker = queue.work(async () => {
      most = Math.max(most, ++running);
      await gate.promise;
      running--;
    }, { concurrency: 3 });
    await until(() => running === 3);
    // Somebody else's job is handled meanwhile: whoever was to start has had the chance.
    await store.queue("other").enqueue(1);
    const other = store.queue("other").work(() => {});
    await until(() => ofType(events, "acked").length === 1);
    assertEquals([running, (await queue.stats()).ready], [3, 5]);
    gate.resolve();
    await until(async () =>
      (await queue.stats().then(({ ready, claimed }) => ready + claimed)) === 0
    );
    assertEquals(most, 3);
    const batches = ofType(events, "claimed").filter((event) => event.queue === "q");
    assert(batches.every(({ ids }) => ids.length <= 3));
    assertEquals(batches.flatMap(({ ids }) => ids), ids);
    await Promise.all([worker.stop(), other.stop()]);
  });

  testStore(harness, "a slow handler does not hold up the others", async (store) => {
    const queue = store.queue<string>("q");
    await queue.enqueueMany(["slow", "a", "b", "c", "d"]);
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const worker = queue.work(async (job) => {
      if (job.payload === "slow") await gate.promise;
      seen.push(job.payload);
    }, { concurrency: 2 });
    await until(() => seen.length === 4);
    assertEquals(seen, ["a", "b", "c", "d"]);
    gate.resolve();
    await until(() => seen.length === 5);
    await worker.stop();
  });

  testStore(
    harness,
    "a poisoned job is a failed attempt and costs only itself",
    async (store, database) => {
      const queue = store.queue<number>("q", { maxAttempts: 2, backoff: 1 });
      const ids = await queue.enqueueMany([0, 1, 2, 3]);
      await database.poisonJob(ids[1]!, "[");
      const seen: number[] = [];
      const worker = queue.work((job) => void seen.push(job.payload), { concurrency: 4 });
      await until(async () => (await queue.getJob(ids[1]!))?.state === "dead");
      await until(() => seen.length === 3);
      assertEquals(seen.toSorted(), [0, 2, 3]);
      const dead = await queue.getJob(ids[1]!);
      assertEquals([dead?.reason, dead?.attempts], ["exhausted", 2]);
      assert(dead?.lastError?.startsWith("CodecError"), dead?.lastError);
      await worker.stop();
    },
  );

  testDatabase(
    harness,
    "a cancel reaches a running handler and the worker goes on",
    async (database) => {
      const [store, other] = [await database.open(), await database.open()];
      const queue = store.queue<string>("q");
      const id = await queue.enqueue("unwanted");
      const events = eventsOf(store);
      const reasons: unknown[] = [];
      const worker = queue.work(async (job) => {
        if (job.payload === "wanted") return;
        reasons.push((await abortReason(job.signal)).reason);
        throw job.signal.reason;
      });
      await until(() => ofType(events, "claimed").length === 1);
      assertEquals(await other.queue("q").cancel(id), true);
      await queue.enqueue("wanted");
      await until(() => ofType(events, "acked").length === 1);
      assertEquals(reasons, ["cancelled"]);
      assertEquals(await queue.getJob(id), undefined);
      await worker.stop();
    },
  );

  testStore(
    harness,
    "a handler that blocks past its lease loses the claim and hears of it",
    async (store) => {
      const visibility = 100;
      const queue = store.queue("q", { visibility, maxAttempts: 2 });
      const events = eventsOf(store);
      await queue.enqueue(1);
      const calls: boolean[] = [];
      const worker = queue.work(async (job) => {
        if (job.attempt === 2) return;
        for (const start = performance.now(); performance.now() - start < 2 * visibility;);
        await delay(1);
        calls.push(await job.heartbeat(), await job.ack());
      });
      await until(() => ofType(events, "acked").length === 1);
      assertEquals(calls, [false, false]);
      assertEquals(ofType(events, "lease-lost").length >= 1, true);
      const reasons = ofType(events, "degraded").map((event) => event.reason);
      assertEquals(reasons.length, 1);
      assert(/\b\d{2,} ms\b/.test(reasons[0]!), reasons[0]);
      await worker.stop();
    },
  );

  testStore(harness, "a handler may use the store it was called by", async (store) => {
    const queue = store.queue<number>("q");
    const done = Promise.withResolvers<void>();
    const worker = queue.work(async (job) => {
      if (job.payload === 0) return done.resolve();
      await queue.enqueue(job.payload - 1);
      await store.transaction((tx) => tx.publishTx("steps", job.payload));
    });
    await queue.enqueue(3);
    await soon(done.promise);
    await worker.stop();
    const events = await store.stream("steps").readSince(0, 10);
    assertEquals(events.map((event) => event.payload), [3, 2, 1]);
  });

  testDatabase(harness, "two workers of a queue share its jobs and lose none", async (database) => {
    const stores = [await database.open(), await database.open()];
    const seen: number[][] = [[], [], []];
    const owners = [stores[0]!, stores[0]!, stores[1]!];
    const workers = owners.map((store, index) =>
      store.queue<number>("q").work(async (job) => {
        seen[index]!.push(job.id);
        await delay(1);
      }, { concurrency: 2 })
    );
    const ids = await stores[0]!.queue<number>("q").enqueueMany(Array(60).fill(0));
    await until(() => seen.flat().length >= 60);
    await Promise.all(workers.map((worker) => worker.stop()));
    assertEquals(seen.flat().toSorted((a, b) => a - b), ids);
  });

  testStore(harness, "a second handler takes the jobs the first has no hand for", async (store) => {
    const queue = store.queue<string>("q");
    const gate = Promise.withResolvers<void>();
    const taken: string[] = [];
    const workers = ["first", "second"].map((name) =>
      queue.work(async () => {
        taken.push(name);
        await gate.promise;
      })
    );
    await queue.enqueueMany(["a", "b"]);
    await until(() => taken.length === 2);
    assertEquals(taken.toSorted(), ["first", "second"]);
    gate.resolve();
    await Promise.all(workers.map((worker) => worker.stop()));
    assertEquals((await queue.stats()).claimed, 0);
  });

  testStore(harness, "fifty workers claim a single job once", async (store) => {
    const queue = store.queue<number>("q");
    const events = eventsOf(store);
    let runs = 0;
    const workers = Array.from({ length: 50 }, () => queue.work(() => void runs++));
    const id = await queue.enqueue(1);
    await until(() => ofType(events, "acked").length === 1);
    const last = await queue.enqueue(2);
    await until(() => ofType(events, "acked").length === 2);
    assertEquals(ofType(events, "claimed").map(({ ids }) => ids), [[id], [last]]);
    assertEquals(runs, 2);
    await Promise.all(workers.map((worker) => worker.stop()));
  });
}
