import { assert, assertEquals, assertRejects } from "@std/assert";
import { delay } from "@std/async";
import { DatabaseError } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claim, LONG, passed, SHORT, whileHeld } from "./queue_jobs.ts";
import { soon, until } from "./wait.ts";

/** Numbers from 0. */
function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** What holds when holders, claimers and sweeps of several stores meet. */
export function queueRaces(harness: Harness): void {
  testDatabase(harness, "two stores never claim the same job", async (database) => {
    const stores = [await database.open(), await database.open()];
    const ids = await stores[0]!.queue<number>("q").enqueueMany(numbers(200));
    const taken = await Promise.all(stores.map(async (store) => {
      const mine: number[] = [];
      while (true) {
        const jobs = await store.queue("q").claimBatch("worker", 7);
        if (jobs.length === 0) return mine;
        mine.push(...jobs.map((job) => job.id));
        await delay(0);
      }
    }));
    assertEquals(taken.flat().toSorted((a, b) => a - b), ids);
  });

  testStore(harness, "concurrent claims of one store never take the same job", async (store) => {
    const queue = store.queue<number>("q");
    const ids = await queue.enqueueMany(numbers(40));
    const jobs = await Promise.all(numbers(50).map(() => queue.claimOne("worker")));
    const taken = jobs.flatMap((job) => job === undefined ? [] : [job.id]);
    assertEquals(taken.toSorted((a, b) => a - b), ids);
  });

  testDatabase(
    harness,
    "a job whose ack meets the end of its lease is either acked or recovered",
    async (database) => {
      const [holder, bystander] = [await database.open(), await database.open()];
      const queue = holder.queue<number>("q", { visibility: SHORT, maxAttempts: 1_000 });
      await queue.enqueueMany(numbers(120));
      const jobs = await queue.claimBatch("worker", 120);
      let areAcked = false;
      const acks = Promise.all(jobs.map(async (job, index) => {
        await delay(index);
        return await job.ack();
      })).finally(() => areAcked = true);
      while (!areAcked) {
        await bystander.queue("q").sweepExpired();
        await delay(0);
      }
      for (const [index, landed] of (await acks).entries()) {
        const snapshot = await queue.getJob(jobs[index]!.id);
        assertEquals(snapshot?.state, landed ? undefined : "ready", `job ${index}`);
      }
    },
  );

  testDatabase(harness, "a sweep takes no job from a live claim", async (database) => {
    const [holder, bystander] = [await database.open(), await database.open()];
    const queue = holder.queue<number>("q", { visibility: LONG });
    const ids = await queue.enqueueMany(numbers(60));
    let isDone = false;
    let moved = 0;
    const sweeps = (async () => {
      while (!isDone) {
        moved += await bystander.queue("q").sweepExpired();
        await delay(0);
      }
    })();
    for (let left = ids.length; left > 0;) {
      for (const job of await queue.claimBatch("worker", 5)) {
        // Every third job is acked in its second attempt, under a new claim.
        const isRetried = job.id % 3 === 0 && job.attempt === 1;
        assertEquals(await (isRetried ? job.retry({ delay: 0 }) : job.ack()), true);
        if (!isRetried) left--;
      }
    }
    isDone = true;
    await sweeps;
    assertEquals(moved, 0);
    assertEquals(await Promise.all(ids.map((id) => queue.getJob(id))), ids.map(() => undefined));
  });

  testDatabase(
    harness,
    "a job whose ack failed on the database is claimable again when its lease ends",
    async (database) => {
      const store = await database.open({ writerTimeout: 30 });
      const queue = store.queue("q", { visibility: 2 * SHORT });
      await queue.enqueue(1);
      const job = await claim(queue);
      const error = await whileHeld(database, "q", job.id, async () => {
        return await assertRejects(() => job.ack(), DatabaseError);
      });
      assert(error.retryable);
      await passed(2 * SHORT);
      assertEquals((await claim(queue)).attempt, 2);
    },
  );

  testDatabase(
    harness,
    "a call that failed on the database can be made again",
    async (database) => {
      const store = await database.open({ writerTimeout: 30 });
      const queue = store.queue("q");
      await queue.enqueue(1);
      const job = await claim(queue);
      await whileHeld(database, "q", job.id, async () => {
        for (const call of [() => job.ack(), () => job.retry(), () => job.fail()]) {
          await assertRejects(call, DatabaseError);
        }
        await assertRejects(() => queue.ackBatch([job]), DatabaseError);
        await assertRejects(() => job.release(), DatabaseError);
        await assertRejects(() => job.heartbeat(), DatabaseError);
      });
      assertEquals((await queue.getJob(job.id))?.state, "claimed");
      assertEquals(await job.ack(), true);
    },
  );

  testDatabase(harness, "queue.ackBatch() lands all its live claims or none", async (database) => {
    const store = await database.open({ writerTimeout: 30 });
    const queue = store.queue<number>("q");
    await queue.enqueueMany(numbers(20));
    const jobs = await queue.claimBatch("worker", 20);
    const ids = jobs.map((job) => job.id);
    await whileHeld(database, "q", ids[10]!, async () => {
      await assertRejects(() => queue.ackBatch(jobs), DatabaseError);
    });
    assertEquals((await queue.stats()).claimed, 20);
    assertEquals(await queue.ackBatch(jobs), ids);
  });

  testDatabase(harness, "a write waits for another's transaction to end", async (database) => {
    const store = await database.open();
    const queue = store.queue("q");
    await queue.enqueue(1);
    const job = await claim(queue);
    let ack: Promise<boolean> | undefined;
    await whileHeld(database, "q", job.id, async () => {
      ack = job.ack();
      // Reads see what is committed and wait for nobody.
      assertEquals((await queue.getJob(job.id))?.state, "claimed");
    });
    assertEquals(await soon(ack!), true);
  });

  testDatabase(
    harness,
    "the store sweeps all queues by itself, also those it never opened",
    async (database) => {
      const producer = await database.open();
      const lapsing = producer.queue("lapsing", { visibility: SHORT, maxAttempts: 1 });
      const expiring = producer.queue("expiring");
      const ids = [
        await lapsing.enqueue(1),
        await expiring.enqueue(1, { expires: SHORT }),
      ] as const;
      await claim(lapsing);
      await database.open({ sweepInterval: 10 });
      await until(async () => (await lapsing.getJob(ids[0]))?.diedAt);
      await until(async () => (await expiring.getJob(ids[1]))?.diedAt);
      assertEquals(await lapsing.sweepExpired() + await expiring.sweepExpired(), 0);
    },
  );

  testStore(harness, "queue.sweepExpired() moves more rows than one step does", async (store) => {
    const queue = store.queue<number>("q", { visibility: 3 * SHORT });
    await queue.enqueueMany(numbers(2_500));
    assertEquals((await queue.claimBatch("worker", 2_500)).length, 2_500);
    await passed(3 * SHORT);
    assertEquals(await queue.sweepExpired(), 2_500);
    assertEquals(await queue.sweepExpired(), 0);
  });

  testStore(harness, "queue.sweepExpired() moves jobs of its own queue only", async (store) => {
    for (const name of ["a", "b"]) {
      await store.queue(name, { visibility: SHORT }).enqueue(1);
      await claim(store.queue(name));
    }
    await passed(SHORT);
    assertEquals(await store.queue("a").sweepExpired(), 1);
    assertEquals(await store.queue("b").sweepExpired(), 1);
  });
}
