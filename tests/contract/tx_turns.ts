import {
  assert,
  assertEquals,
  assertExists,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
} from "@std/assert";
import { DatabaseError } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { soon } from "./wait.ts";

/** Whose turn it is when several would write, and what ends the wait for one. */
export function txTurns(harness: Harness): void {
  testStore(
    harness,
    "store.beginTx() rejects at once with the reason of an aborted signal",
    async (store) => {
      const reason = new Error("shutting down");
      const signal = AbortSignal.abort(reason);
      assertStrictEquals(await assertRejects(() => store.beginTx({ signal })), reason);
      let hasRun = false;
      const work = () => void (hasRun = true);
      assertStrictEquals(await assertRejects(() => store.transaction(work, { signal })), reason);
      assertEquals(hasRun, false);
      await (await store.beginTx()).commit();
    },
  );

  testStore(harness, "store.beginTx() checks its options before it waits", async (store) => {
    const tx = await store.beginTx();
    for (const timeout of [-1, NaN, -Infinity]) {
      await assertRejects(() => store.beginTx({ timeout }), RangeError, "timeout");
      await assertRejects(() => store.transaction(() => {}, { timeout }), RangeError, "timeout");
    }
    const wrong = [{ timeout: "1 s" }, { patience: 1 }, { signal: "stop" }, 5, null];
    for (const options of wrong as object[]) {
      await assertRejects(() => store.beginTx(options), TypeError);
      await assertRejects(() => store.transaction(() => {}, options), TypeError);
    }
    await tx.commit();
  });

  testStore(harness, "an aborted signal does not touch a tx that has begun", async (store) => {
    const controller = new AbortController();
    const tx = await store.beginTx({ signal: controller.signal });
    controller.abort();
    const id = await tx.enqueueTx("mail", {}, "hello");
    await tx.commit();
    assertExists(await store.queue("mail").getJob(id));
  });

  if (harness.traits.concurrentTransactions) {
    testStore(harness, "store.beginTx() does not wait for an open tx", async (store, database) => {
      const txs = [await store.beginTx(), await store.beginTx()];
      for (const [n, tx] of txs.entries()) await database.business.insert(tx.connection, `o-${n}`);
      for (const tx of txs) await tx.commit();
      assertEquals(await database.business.list(), ["o-0", "o-1"]);
    });
    return;
  }

  testStore(
    harness,
    "store.beginTx() waits for the open tx and is served in order",
    async (store) => {
      const order: string[] = [];
      const first = await store.beginTx();
      const others = ["second", "third", "fourth"].map(async (name) => {
        const tx = await store.beginTx();
        order.push(name);
        await tx.enqueueTx("mail", {}, name);
        await tx.commit();
      });
      await first.enqueueTx("mail", {}, "first");
      order.push("first");
      await first.commit();
      await soon(Promise.all(others), "the turns");
      assertEquals(order, ["first", "second", "third", "fourth"]);
      const jobs = await store.queue("mail").claimBatch("w-1", 9);
      assertEquals(jobs.map((job) => job.payload), order);
    },
  );

  testStore(harness, "a call outside a tx waits for its end", async (store) => {
    const order: string[] = [];
    const tx = await store.beginTx();
    const calls = [
      store.queue("mail").enqueue("hello").then(() => order.push("enqueued")),
      store.stream("orders").publish("placed").then(() => order.push("published")),
      store.tryLock("report", "host-1", 60_000).then(() => order.push("locked")),
    ];
    for (let n = 0; n < 5; n++) await tx.enqueueTx("mail", {}, n);
    await store.queue("mail").stats();
    order.push("committing");
    await tx.commit();
    await soon(Promise.all(calls), "the calls");
    assertEquals(order[0], "committing");
    assertEquals(order.length, 4);
  });

  testStore(
    harness,
    "an aborted signal ends the wait for a turn, and the next one is served",
    async (store) => {
      const tx = await store.beginTx();
      const controller = new AbortController();
      const reason = new Error("the request was cancelled");
      const waiting = [
        store.beginTx({ signal: controller.signal }),
        store.transaction(() => "never", { signal: controller.signal }),
      ];
      const served = store.beginTx();
      controller.abort(reason);
      for (const call of waiting) assertStrictEquals(await assertRejects(() => call), reason);
      await tx.commit();
      await (await soon(served, "the turn")).commit();
    },
  );

  testStore(
    harness,
    "a call that waits too long for an open tx is retryable and says where that was opened",
    async (store) => {
      const tx = await store.beginTx();
      const calls = [
        () => store.queue("mail").enqueue("late"),
        () => store.stream("orders").publish("late"),
        () => store.notify("news"),
        () => store.beginTx(),
      ];
      for (const call of calls) {
        const error = await assertRejects(call, DatabaseError);
        assert(error.retryable);
        assertEquals(error.outcome, "not-applied");
        assertStringIncludes(error.message, "tx_turns.ts");
      }
      const id = await tx.enqueueTx("mail", {}, "hello");
      await tx.commit();
      assertEquals((await store.queue("mail").stats()).ready, 1);
      assertExists(await store.queue("mail").getJob(id));
      assertEquals((await store.stream("orders").info()).head, 0);
    },
    { writerTimeout: 30 },
  );
}
