/** What the SQLite engine pays for: how many commits a call takes, and what shares one. */

import { assert, assertEquals, assertInstanceOf, assertLessOrEqual } from "@std/assert";
import { CodecError } from "../mod.ts";
import { soon, until } from "./contract/wait.ts";
import { countingDriver } from "./sqlite/counting_driver.ts";
import { testFile } from "./sqlite/test_file.ts";

testFile("64 concurrent enqueues share a few commits", async (file) => {
  const { driver, commitsOf } = await countingDriver();
  const queue = (await file.open({ driver })).queue("mail");
  const commits = await commitsOf(() =>
    Promise.all(Array.from({ length: 64 }, (_, n) => queue.enqueue(n)))
  );
  assertLessOrEqual(commits, 3);
  assertEquals((await queue.stats()).ready, 64);
});

testFile("64 concurrent writes of all kinds share a few commits", async (file) => {
  const { driver, commitsOf } = await countingDriver();
  const store = await file.open({ driver });
  const commits = await commitsOf(() =>
    Promise.all(
      Array.from({ length: 16 }, (_, n) => [
        store.queue(`q-${n % 3}`).enqueue(n),
        store.stream(`s-${n % 3}`).publish(n),
        store.outbox("mail").enqueue(n),
        store.notify("news"),
      ]).flat(),
    )
  );
  assertLessOrEqual(commits, 3);
});

testFile("each write that is awaited takes exactly one commit", async (file) => {
  const { driver, commitsOf } = await countingDriver();
  const store = await file.open({ driver });
  const queue = store.queue("mail");
  const writes: (() => Promise<unknown>)[] = [
    () => queue.enqueue("hello"),
    () => queue.enqueueMany(["a", "b", "c"]),
    () => queue.claimBatch("w-1", 2),
    async () => await (await queue.claimOne("w-1"))?.heartbeat() && undefined,
    () => store.stream("orders").publish("placed"),
    () => store.stream("orders").publishMany([{ payload: 1 }, { payload: 2 }]),
    () => store.stream("orders").saveOffset("billing", 1),
    () => store.tryLock("report", "host-1", 60_000),
    () => store.notify("news"),
  ];
  const commits: number[] = [];
  for (const write of writes) commits.push(await commitsOf(write));
  // The fourth claims and extends.
  assertEquals(commits, [1, 1, 1, 2, 1, 1, 1, 1, 1]);
});

testFile("a transaction with a business write and messages takes one commit", async (file) => {
  const { driver, commitsOf } = await countingDriver();
  const store = await file.open({ driver });
  await store.listen("news");
  const commits = await commitsOf(() =>
    store.transaction(async (tx) => {
      tx.connection.exec("CREATE TABLE orders (id TEXT PRIMARY KEY)");
      tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run("o-1");
      await tx.enqueueTx("mail", {}, "hello");
      await tx.outboxEnqueueTx("mail", {}, "hello");
      await tx.publishTx("orders", "placed");
      await tx.notifyTx("news");
    })
  );
  assertEquals(commits, 1);
});

testFile("claims, workers and receivers that find nothing write nothing", async (file) => {
  const { driver, commitsOf } = await countingDriver();
  const store = await file.open({ driver });
  const commits = await commitsOf(async () => {
    assertEquals(await store.queue("mail").claimOne("w-1"), undefined);
    assertEquals(await store.outbox("mail").runOnce("w-1", () => {}), false);
    const worker = store.queue("mail").work(() => {}, { concurrency: 10 });
    const receiver = await store.stream("orders").subscribe("billing");
    assertEquals(await receiver.tryRecv(), undefined);
    await worker.stop();
  });
  assertEquals(commits, 0);
});

testFile("a wake for another queue makes an idle worker write nothing", async (file) => {
  const { driver, commitsOf } = await countingDriver();
  const store = await file.open({ driver });
  const child = await file.storekeeper();
  const worker = store.queue("mail").work(() => {});
  const receiver = await store.listen("marker");
  const commits = await commitsOf(async () => {
    for (let n = 0; n < 20; n++) await child.ask("enqueue", { queue: "other", payloads: [n] });
    await child.ask("notify", { channel: "marker" });
    await soon(receiver.recv(), "the marker");
  });
  assertEquals(commits, 0);
  await worker.stop();
});

testFile("a worker acks a batch and claims the next in few commits", async (file) => {
  const { driver, commitsOf } = await countingDriver();
  const store = await file.open({ driver });
  const queue = store.queue("mail");
  await queue.enqueueMany(Array.from({ length: 500 }, (_, n) => n));
  const commits = await commitsOf(async () => {
    const worker = queue.work(() => {}, { concurrency: 50 });
    await until(async () => {
      const { ready, claimed } = await queue.stats();
      return ready + claimed === 0;
    }, "the last ack");
    await worker.stop();
  });
  assertLessOrEqual(commits, 25);
});

testFile(
  "a call that fails does not take those along that it shares a commit with",
  async (file) => {
    const store = await file.open();
    const [queue, orders] = [store.queue("mail"), store.stream("orders")];
    const outcomes = await Promise.allSettled([
      queue.enqueue("before"),
      orders.saveOffset("billing", 99),
      queue.enqueue(new Date() as never),
      orders.publish("placed"),
      queue.enqueue("after"),
    ]);
    assertEquals(outcomes.map(({ status }) => status), [
      "fulfilled",
      "rejected",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    const reasons = outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason);
    assertInstanceOf(reasons[1], RangeError);
    assertInstanceOf(reasons[2], CodecError);
    assertEquals((await queue.stats()).ready, 2);
    assertEquals((await orders.readSince(0, 9)).length, 1);
  },
);

testFile(
  "a transaction gets its turn among writes without end, and they among others",
  async (file) => {
    const store = await file.open({ durability: "normal" });
    const queue = store.queue("mail");
    let isOver = false;
    const write = async (call: () => Promise<unknown>) => {
      let turns = 0;
      for (; !isOver; turns++) await call();
      return turns;
    };
    const writers = [
      ...Array.from({ length: 4 }, () => write(() => queue.enqueue("again"))),
      ...Array.from({ length: 2 }, () => write(() => store.transaction(() => {}))),
    ];
    const job = await soon(
      store.transaction((tx) => tx.enqueueTx("other", {}, 1)),
      "the transaction",
    );
    await soon(store.queue("other").enqueue(2), "the enqueue");
    isOver = true;
    const turns = await soon(Promise.all(writers), "the writers");
    assert(Math.min(...turns) > 0, `${turns}`);
    assertEquals((await store.queue("other").getJob(job))?.payload, 1);
  },
);
