import { assertEquals, assertInstanceOf } from "@std/assert";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claim, eventsOf, LONG, ofType } from "./queue_jobs.ts";
import { until } from "./wait.ts";

/** A worker whose handler's writes commit with the ack. */
export function workTx(harness: Harness): void {
  testStore(
    harness,
    "work({ tx: true }) commits the handler's writes with the ack",
    async (store, database) => {
      const queue = store.queue<string>("q");
      const events = eventsOf(store);
      const id = await queue.enqueue("o-1");
      const worker = queue.work(async (job, tx) => {
        await database.business.insert(tx.connection, job.payload);
        await tx.enqueueTx("next", {}, job.payload);
        await tx.publishTx("orders", job.payload);
        // Nothing of it is there yet.
        assertEquals((await store.queue("next").stats()).ready, 0);
        assertEquals((await queue.getJob(job.id))?.state, "claimed");
      }, { tx: true });
      await until(() => ofType(events, "acked").length === 1);
      assertEquals(ofType(events, "acked"), [{ type: "acked", queue: "q", ids: [id] }]);
      assertEquals(await queue.getJob(id), undefined);
      assertEquals(await database.business.list(), ["o-1"]);
      assertEquals((await claim(store.queue("next"))).payload, "o-1");
      assertEquals((await store.stream("orders").readSince(0, 10)).length, 1);
      await worker.stop();
    },
  );

  testStore(
    harness,
    "work({ tx: true }) rolls back when the handler throws",
    async (store, database) => {
      const queue = store.queue<string>("q", { backoff: 1 });
      const events = eventsOf(store);
      const id = await queue.enqueue("o");
      const errors: unknown[] = [];
      const worker = queue.work(async (job, tx) => {
        errors.push(job.lastError);
        await database.business.insert(tx.connection, `${job.payload}-${job.attempt}`);
        await tx.enqueueTx("next", {}, job.attempt);
        if (job.attempt === 1) throw new Error("no route");
      }, { tx: true });
      await until(() => ofType(events, "acked").length === 1);
      await worker.stop();
      assertEquals(await database.business.list(), ["o-2"]);
      const next = await store.queue("next").claimBatch("worker", 10);
      assertEquals(next.map((job) => job.payload), [2]);
      assertEquals(errors, [undefined, "Error: no route"]);
      assertEquals(ofType(events, "retried").map((event) => [event.id, event.error]), [
        [id, "Error: no route"],
      ]);
    },
  );

  testStore(
    harness,
    "work({ tx: true }) rolls back when the claim was lost",
    async (store, database) => {
      const visibility = 100;
      const queue = store.queue<string>("q", { visibility });
      const events = eventsOf(store);
      const id = await queue.enqueue("o");
      const worker = queue.work(async (job, tx) => {
        await database.business.insert(tx.connection, `${job.payload}-${job.attempt}`);
        if (job.attempt > 1) return;
        for (const start = performance.now(); performance.now() - start < 2 * visibility;);
      }, { tx: true });
      await until(() => ofType(events, "acked").length === 1);
      await worker.stop();
      assertEquals((await database.business.list()).includes("o-1"), false);
      assertEquals((await database.business.list()).length, 1);
      assertEquals(ofType(events, "retried"), []);
      assertEquals(ofType(events, "lease-lost")[0], { type: "lease-lost", queue: "q", id });
    },
  );

  testStore(
    harness,
    "work({ tx: true }) rolls back when the job was cancelled",
    async (store, database) => {
      const queue = store.queue<string>("q");
      await queue.enqueueMany(["cancelled", "kept"]);
      const events = eventsOf(store);
      const worker = queue.work(async (job, tx) => {
        await database.business.insert(tx.connection, job.payload);
        // By the handler itself: on every engine a cancel from outside could only come before or after.
        if (job.payload === "cancelled") await tx.cancelTx("q", job.id);
      }, { tx: true });
      await until(() => ofType(events, "acked").length === 1);
      await worker.stop();
      assertEquals(await database.business.list(), ["kept"]);
    },
  );

  const endings = { ackTx: undefined, failTx: "dead", retryTx: "scheduled" } as const;
  for (const [name, state] of Object.entries(endings)) {
    testStore(
      harness,
      `work({ tx: true }) adds nothing when the handler calls ${name}()`,
      async (store, database) => {
        const queue = store.queue<string>("q");
        const events = eventsOf(store);
        const id = await queue.enqueue("o-1");
        const worker = queue.work(async (job, tx) => {
          await database.business.insert(tx.connection, job.payload);
          if (name === "ackTx") await tx.ackTx(job);
          else if (name === "failTx") await tx.failTx(job, "broken");
          else await tx.retryTx(job, { delay: LONG, error: "busy" });
        }, { tx: true });
        await until(async () => (await queue.getJob(id))?.state === state);
        await worker.stop();
        assertEquals(await database.business.list(), ["o-1"]);
        assertEquals((await queue.getJob(id))?.attempts, state && 1);
        assertEquals(ofType(events, "lease-lost"), []);
      },
    );
  }

  testStore(
    harness,
    "work({ tx: true }) forgets what the handler did to its job before it threw",
    async (store) => {
      const queue = store.queue<string>("q", { backoff: LONG });
      const id = await queue.enqueue("o-1");
      const worker = queue.work(async (job, tx) => {
        await tx.failTx(job, "of no account");
        throw new Error("no route");
      }, { tx: true });
      await until(async () => (await queue.getJob(id))?.state === "scheduled");
      await worker.stop();
      const job = await queue.getJob(id);
      assertEquals([job?.attempts, job?.lastError, job?.reason], [1, "Error: no route", undefined]);
    },
  );

  testStore(harness, "work({ tx: true }) refuses a write beside the transaction", async (store) => {
    const queue = store.queue<string>("q", { maxAttempts: 1 });
    const id = await queue.enqueue("o-1");
    const caught: unknown[] = [];
    const worker = queue.work(async (job) => {
      for (const call of [() => job.ack(), () => queue.enqueue("beside")]) {
        await call().catch((error) => caught.push(error));
      }
      throw caught[0];
    }, { tx: true });
    await until(async () => (await queue.getJob(id))?.state === "dead");
    await worker.stop();
    assertEquals(caught.length, 2);
    for (const error of caught) assertInstanceOf(error, TypeError);
    assertEquals((await queue.stats()).ready, 0);
  });

  testStore(
    harness,
    "work({ tx: true }) survives a statement of the handler that fails",
    async (store, database) => {
      const queue = store.queue<string>("q", { maxAttempts: 1 });
      const ids = await queue.enqueueMany(["broken", "fine"]);
      const events = eventsOf(store);
      const worker = queue.work(async (job, tx) => {
        await database.business.insert(tx.connection, job.payload);
        if (job.payload === "fine") return;
        await database.business.fail(tx.connection);
        throw new Error("the statement failed");
      }, { tx: true });
      await until(() => ofType(events, "acked").length === 1);
      await worker.stop();
      assertEquals(await database.business.list(), ["fine"]);
      assertEquals((await queue.getJob(ids[0]!))?.reason, "exhausted");
    },
  );

  testDatabase(
    harness,
    "work({ tx: true }) runs every job once among several workers",
    async (database) => {
      const stores = [await database.open(), await database.open()];
      const workers = stores.map((store) =>
        store.queue<string>("q").work(async (job, tx) => {
          await database.business.insert(tx.connection, job.payload);
        }, { tx: true, concurrency: 3 })
      );
      const names = Array.from({ length: 30 }, (_, index) => `o-${index + 10}`);
      await stores[0]!.queue<string>("q").enqueueMany(names);
      await until(async () => (await database.business.list()).length === 30);
      await Promise.all(workers.map((worker) => worker.stop()));
      assertEquals(await database.business.list(), names);
      const { oldestReadyAt: _, ...counts } = await stores[0]!.queue("q").stats();
      assertEquals(counts, { ready: 0, scheduled: 0, claimed: 0, dead: 0 });
    },
  );
}
