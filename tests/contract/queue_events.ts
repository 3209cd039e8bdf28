import { assertEquals } from "@std/assert";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claim, eventsOf, ofType, passed, SHORT } from "./queue_jobs.ts";

/** What a store reports of the jobs that pass through it. */
export function queueEvents(harness: Harness): void {
  testStore(harness, "claims are reported with their worker", async (store) => {
    const queue = store.queue<number>("q");
    const ids = await queue.enqueueMany([1, 2, 3]);
    const events = eventsOf(store);
    await queue.claimOne("pod-1");
    await queue.claimBatch("pod-2", 10);
    await queue.claimBatch("pod-3", 10);
    assertEquals(events, [
      { type: "claimed", queue: "q", ids: [ids[0]!], worker: "pod-1" },
      { type: "claimed", queue: "q", ids: [ids[1]!, ids[2]!], worker: "pod-2" },
    ]);
  });

  testStore(harness, "acks are reported", async (store) => {
    const queue = store.queue<number>("q");
    const ids = await queue.enqueueMany([1, 2, 3]);
    const jobs = await queue.claimBatch("worker", 3);
    const events = eventsOf(store);
    await jobs[0]!.ack();
    await queue.ackBatch(jobs.slice(1));
    assertEquals(events, [
      { type: "acked", queue: "q", ids: [ids[0]!] },
      { type: "acked", queue: "q", ids: [ids[1]!, ids[2]!] },
    ]);
  });

  testStore(harness, "a retry is reported with its delay and error", async (store) => {
    const queue = store.queue("q");
    const id = await queue.enqueue(1);
    const job = await claim(queue);
    const events = eventsOf(store);
    await job.retry({ delay: 2_500, error: "busy" });
    assertEquals(events, [{ type: "retried", queue: "q", id, delay: 2_500, error: "busy" }]);
  });

  testStore(harness, "a job that dies of a call is reported dead", async (store) => {
    const queue = store.queue<number>("q", { maxAttempts: 1 });
    const ids = await queue.enqueueMany([1, 2]);
    const events = eventsOf(store);
    for (const job of await queue.claimBatch("worker", 2)) {
      await (job.id === ids[0] ? job.fail() : job.retry());
    }
    assertEquals(ofType(events, "dead").map(({ queue, id }) => [queue, id]), [
      ["q", ids[0]],
      ["q", ids[1]],
    ]);
    assertEquals(ofType(events, "retried"), []);
  });

  for (const call of ["ack", "retry", "fail", "release"] as const) {
    testStore(harness, `job.${call}() reports a lease that was lost`, async (store) => {
      const queue = store.queue("q", { visibility: SHORT });
      const id = await queue.enqueue(1);
      const job = await claim(queue);
      await passed(SHORT);
      const events = eventsOf(store);
      assertEquals(await job[call](), false);
      assertEquals(events, [{ type: "lease-lost", queue: "q", id }]);
    });
  }

  testStore(harness, "queue.ackBatch() reports the leases that were lost", async (store) => {
    const short = store.queue<number>("q", { visibility: SHORT });
    const lost = await short.enqueue(1);
    const held = await store.queue<number>("q").enqueue(2);
    const jobs = await short.claimBatch("worker", 2);
    await passed(SHORT);
    const events = eventsOf(store);
    await short.ackBatch(jobs);
    assertEquals(ofType(events, "lease-lost"), [{ type: "lease-lost", queue: "q", id: lost }]);
    assertEquals(ofType(events, "acked"), [{ type: "acked", queue: "q", ids: [held] }]);
  });

  testStore(
    harness,
    "what a transaction does to a job is reported when it commits",
    async (store) => {
      const queue = store.queue<number>("q");
      const ids = await queue.enqueueMany([1, 2, 3, 4]);
      const jobs = await queue.claimBatch("worker", 4);
      const events = eventsOf(store);
      const tx = await store.beginTx();
      await tx.ackTx(jobs[3]!);
      await tx.rollback();
      await store.transaction(async (tx) => {
        await tx.ackTx(jobs[0]!);
        await tx.retryTx(jobs[1]!, { delay: 10, error: "busy" });
        await tx.failTx(jobs[2]!, "broken");
        assertEquals(events, []);
      });
      assertEquals(events.map((event) => event.type), ["acked", "retried", "dead"]);
      assertEquals(ofType(events, "acked")[0]?.ids, [ids[0]!]);
    },
  );

  testDatabase(
    harness,
    "a store reports what passes through it, not through others",
    async (database) => {
      const [store, other] = [await database.open(), await database.open()];
      const events = eventsOf(other);
      await store.queue("q").enqueue(1);
      await (await claim(store.queue("q"))).ack();
      assertEquals(events, []);
    },
  );

  testStore(
    harness,
    "store.onEvent() stops reporting when its function is called",
    async (store) => {
      const queue = store.queue("q");
      await queue.enqueueMany([1, 2]);
      const types: string[] = [];
      const stop = store.onEvent((event) => types.push(event.type));
      const job = await claim(queue);
      stop();
      await job.ack();
      await claim(queue);
      assertEquals(types, ["claimed"]);
    },
  );
}
