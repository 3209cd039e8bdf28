/** Several operating system processes on one SQLite file: wakes, competition, sudden deaths. */

import { assert, assertEquals, assertLess } from "@std/assert";
import { soon, until } from "./contract/wait.ts";
import { listOrders, makeOrders, testFile } from "./sqlite/test_file.ts";

for (const durability of ["full", "normal"] as const) {
  testFile(
    `a notify of another process wakes a receiver, each time (${durability})`,
    async (file) => {
      const store = await file.open({ durability });
      const child = await file.storekeeper({ durability });
      const receiver = await store.listen("news");
      for (let n = 0; n < 50; n++) {
        const woken = receiver.recv();
        await child.ask("notify", { channel: "news" });
        assertEquals(await soon(woken, `wake ${n}`), { channel: "news" });
      }
    },
  );

  testFile(`a job of another process wakes a worker, each time (${durability})`, async (file) => {
    const store = await file.open({ durability });
    const child = await file.storekeeper({ durability });
    let handle: (payload: unknown) => void = () => {};
    store.queue("mail").work((job) => handle(job.payload));
    for (let n = 0; n < 20; n++) {
      const { promise: handled, resolve } = Promise.withResolvers<unknown>();
      handle = resolve;
      await child.ask("enqueue", { queue: "mail", payloads: [n] });
      assertEquals(await soon(handled, `job ${n}`), n);
    }
  });

  testFile(
    `an event of another process wakes a subscriber, each time (${durability})`,
    async (file) => {
      const store = await file.open({ durability });
      const child = await file.storekeeper({ durability });
      const receiver = await store.stream("orders").subscribe("billing");
      for (let n = 0; n < 20; n++) {
        const event = receiver.recv();
        const offset = await child.ask<number>("publish", { stream: "orders", payload: n });
        assertEquals((await soon(event, `event ${n}`))?.offset, offset);
      }
    },
  );
}

testFile("a worker starts a delayed job of another process when its time comes", async (file) => {
  const store = await file.open();
  const child = await file.storekeeper();
  const { promise: handled, resolve } = Promise.withResolvers<number>();
  store.queue("mail").work((job) => resolve(Date.now() - job.runAt.getTime()));
  await child.ask("enqueue", { queue: "mail", payloads: ["later"], opts: { delay: 150 } });
  const lateness = await soon(handled, "the handler");
  assert(lateness >= 0, `${-lateness} ms early`);
  // Nothing polls here: only the deadline can have woken it.
  assertLess(lateness, 10_000);
});

testFile("a job that another process gives back wakes a worker", async (file) => {
  const store = await file.open();
  const child = await file.storekeeper();
  const id = await store.queue("mail", { visibility: 600_000 }).enqueue("hello");
  await child.ask("claim", { queue: "mail", worker: "w-1", limit: 1 });
  const { promise: handled, resolve } = Promise.withResolvers<number>();
  store.queue("mail").work((job) => resolve(job.id));
  await until(async () => (await store.status()).workers === 1);
  await child.ask("release");
  assertEquals(await soon(handled, "the handler"), id);
});

testFile("a dead job that another process requeues wakes a worker", async (file) => {
  const store = await file.open();
  const child = await file.storekeeper();
  const id = await store.queue("mail").enqueue("hello");
  await (await store.queue("mail").claimOne("w-1"))?.fail("broken");
  const { promise: handled, resolve } = Promise.withResolvers<number>();
  store.queue("mail").work((job) => resolve(job.id));
  assertEquals(await child.ask("requeue", { queue: "mail", id }), true);
  assertEquals(await soon(handled, "the handler"), id);
});

testFile("a cancel in another process aborts the signal of a running handler", async (file) => {
  const store = await file.open();
  const child = await file.storekeeper();
  const { promise: begun, resolve: begin } = Promise.withResolvers<AbortSignal>();
  const { promise: aborted, resolve: end } = Promise.withResolvers<void>();
  store.queue("mail").work(async (job) => {
    job.signal.addEventListener("abort", () => end(), { once: true });
    begin(job.signal);
    await aborted;
  });
  const id = await store.queue("mail").enqueue("hello");
  const signal = await soon(begun, "the handler");
  assertEquals(await child.ask("cancel", { queue: "mail", id }), true);
  await soon(aborted, "the abort");
  assertEquals(signal.reason.reason, "cancelled");
});

testFile("competing processes handle and ack each of 2,000 jobs exactly once", async (file) => {
  const store = await file.open({ durability: "normal" });
  const queue = store.queue("mail", { visibility: 600_000 });
  const children = await file.storekeepers(4, { durability: "normal" });
  for (const child of children) await child.ask("work", { queue: "mail", concurrency: 10 });
  const ids = await queue.enqueueMany(Array.from({ length: 2_000 }, (_, n) => n));
  await until(async () => {
    const { ready, claimed } = await queue.stats();
    return ready + claimed === 0;
  }, "the last ack");
  const books = await Promise.all(
    children.map((child) => child.ask<{ handled: number[]; acked: number[] }>("stop")),
  );
  assertEquals(books.flatMap(({ handled }) => handled).sort(ascending), ids);
  assertEquals(books.flatMap(({ acked }) => acked).sort(ascending), ids);
  // None of them did it alone, or nothing competed.
  assert(books.filter(({ acked }) => acked.length > 0).length > 1);
});

testFile("20 processes that open a new file at once all succeed", async (file) => {
  const children = await file.newcomers(20);
  for (let round = 0; round < 3; round++) {
    const path = `${file.path}-${round}`;
    await Promise.all(children.map((child) => child.tell("open", { path })));
    const versions = await Promise.all(children.map((child) => child.hear()));
    assertEquals(versions, Array.from(versions, () => 1));
    await Promise.all(
      children.map((child) => child.ask("enqueue", { queue: "mail", payloads: [1] })),
    );
    const jobs = await children[0]!.ask<unknown[]>("claim", {
      queue: "mail",
      worker: "w",
      limit: 99,
    });
    assertEquals(jobs.length, 20);
    await Promise.all(children.map((child) => child.ask("close")));
  }
});

testFile("the jobs of a killed process come back after their visibility", async (file) => {
  const store = await file.open();
  const victim = await file.storekeeper();
  const queue = store.queue("mail", { visibility: 300 });
  const ids = await queue.enqueueMany(["a", "b", "c"]);
  await victim.ask("claim", { queue: "mail", worker: "pod-1", limit: 3 });
  await victim.kill();
  const claimedAt = Date.now();
  assertEquals(await queue.claimOne("pod-1"), undefined);

  // The name is in use again, by somebody alive: that keeps nothing of the dead one's.
  const back: [number, number][] = [];
  const { promise: done, resolve } = Promise.withResolvers<void>();
  queue.work((job) => {
    assert(Date.now() >= claimedAt - 300);
    if (back.push([job.id, job.attempt]) === 3) resolve();
  }, { worker: "pod-1" });
  await soon(done, "the jobs");
  assertEquals(back, ids.map((id) => [id, 2]));
});

testFile(
  "a job whose process is killed maxAttempts times is dead, not claimed again",
  async (file) => {
    const store = await file.open();
    const queue = store.queue("mail", { visibility: 100, maxAttempts: 2 });
    const id = await queue.enqueue("poison");
    const victims = await file.storekeepers(2);
    for (const [n, victim] of victims.entries()) {
      await until(async () => (await queue.getJob(id))?.state === "ready", "the end of the lease");
      const claims = await victim.ask("claim", { queue: "mail", worker: "pod-1", limit: 1 });
      assertEquals(claims, [{ id, attempt: n + 1 }]);
      await victim.kill();
    }
    await until(async () => (await queue.getJob(id))?.state === "dead", "the end of the lease");
    assertEquals(await queue.claimOne("pod-1"), undefined);
    const [dead] = await queue.deadJobs();
    assertEquals([dead?.id, dead?.reason, dead?.attempts], [id, "exhausted", 2]);
  },
);

testFile(
  "a process killed inside a transaction leaves what was committed and no more",
  async (file) => {
    const store = await file.open();
    await makeOrders(store);
    const victim = await file.storekeeper();
    const receiver = await store.listen("orders");
    await victim.ask("place", { orders: ["o-1", "o-2", "o-3"] });
    await victim.ask("placeHalf", { id: "ghost" });
    await victim.kill();

    // The lock died with it: writing is possible at once.
    await store.queue("mail").enqueue("o-4");
    assertEquals(await listOrders(store), ["o-1", "o-2", "o-3"]);
    const jobs = await store.queue("mail").claimBatch("w-1", 9);
    assertEquals(jobs.map((job) => job.payload), ["o-1", "o-2", "o-3", "o-4"]);
    const events = await store.stream("orders").readSince(0, 9);
    assertEquals(events.map((event) => event.payload), ["o-1", "o-2", "o-3"]);
    assertEquals(receiver.tryRecv(), undefined);
  },
);

testFile("a process killed at any moment loses no order and leaves no half one", async (file) => {
  const store = await file.open();
  await makeOrders(store);
  for (let round = 1; round <= 3; round++) {
    const victim = await file.storekeeper();
    await victim.tell("placeForEver");
    const placed: string[] = [];
    while (placed.length < 20 * round) placed.push(await victim.hear<string>());
    await victim.kill();
    placed.push(...await victim.heardLast<string>());

    const orders = await listOrders(store);
    const jobs = await store.queue("mail").claimBatch("w-1", 10_000);
    const events = await store.stream("orders").readSince(0, 10_000);
    assertEquals(orders.slice(0, placed.length), placed);
    assertEquals(jobs.map((job) => job.payload), orders);
    assertEquals(events.map((event) => event.payload), orders);

    await store.queue("mail").ackBatch(jobs);
    await store.stream("orders").trimTo(events.at(-1)!.offset);
    await store.transaction((tx) => tx.connection.exec("DELETE FROM orders"));
  }
});

testFile(
  "a handler that blocks the event loop past its lease is told, and its ack does not land",
  async (file) => {
    const mark = `${file.folder}/handled`;
    const store = await file.open();
    const rival = await file.storekeeper();
    const queue = store.queue("mail", { visibility: 300 });
    const reports: string[] = [];
    store.onEvent((event) => event.type === "degraded" && reports.push(event.reason));

    const { promise: outcome, resolve } = Promise.withResolvers<boolean[]>();
    const worker = queue.work(async (job) => {
      await rival.ask("work", { queue: "mail", concurrency: 1, mark });
      blockUntil(() => exists(mark));
      resolve([await job.heartbeat(), await job.ack(), job.signal.aborted]);
    });
    const id = await queue.enqueue("heavy");
    assertEquals(await soon(outcome, "the handler"), [false, false, true]);
    const { handled, acked } = await rival.ask<{ handled: number[]; acked: number[] }>("stop");
    assertEquals([handled, acked], [[id], [id]]);
    await until(() => reports.length > 0, "the warning");
    assertEquals(reports.length, 1);
    assert(/event loop.*\d+ ms/.test(reports[0]!), reports[0]);
    assertEquals(await queue.getJob(id), undefined);
    await worker.stop();
  },
);

testFile("projections of several processes on one consumer apply each event once", async (file) => {
  const store = await file.open({ durability: "normal" });
  await makeOrders(store);
  const children = await file.storekeepers(3, { durability: "normal" });
  for (const child of children) {
    await child.ask("project", { stream: "orders", consumer: "billing" });
  }
  const orders = store.stream("orders");
  const expected = Array.from({ length: 200 }, (_, n) => `o-${n}`);
  for (const payload of expected) await orders.publish(payload);
  const { head } = await orders.info();
  await until(async () => await orders.getOffset("billing") === head, "the last event");
  // The table would have refused the second application of an event.
  assertEquals(await listOrders(store), expected);
  for (const child of children) assertEquals(await child.ask("stop"), { handled: [], acked: [] });
});

function ascending(a: number, b: number): number {
  return a - b;
}

/** Keeps the event loop from going on, as a long computation does. */
function blockUntil(isOver: () => boolean): void {
  const limit = performance.now() + 15_000;
  while (!isOver()) if (performance.now() > limit) throw new Error("blocked for too long");
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
