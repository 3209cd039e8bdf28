import {
  assertEquals,
  assertExists,
  assertFalse,
  assertGreater,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { ClosedError } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { txCalls } from "./tx_calls.ts";
import { soon, until } from "./wait.ts";

/** A transaction the caller holds: what it commits, what it leaves, and how it ends. */
export function transactions(harness: Harness): void {
  for (const call of txCalls) {
    testStore(
      harness,
      `tx.${call.name}() commits with the business write`,
      async (store, database) => {
        const { run, isThere } = await call.prepare(store);
        const tx = await store.beginTx();
        await database.business.insert(tx.connection, "o-1");
        await run(tx);
        assertEquals(await database.business.list(), []);
        await tx.commit();
        assertEquals(await database.business.list(), ["o-1"]);
        await until(isThere, `the effect of ${call.name}`);
      },
    );

    testStore(
      harness,
      `tx.rollback() leaves nothing of tx.${call.name}() and of the business write`,
      async (store, database) => {
        const { run, isThere } = await call.prepare(store);
        const before = await database.countRows();
        const tx = await store.beginTx();
        await database.business.insert(tx.connection, "o-1");
        await run(tx);
        await tx.rollback();
        assertEquals(await database.countRows(), before);
        assertEquals(await database.business.list(), []);
        assertFalse(await isThere());
      },
    );

    testStore(
      harness,
      `tx.${call.name}() is part of the commit when it was not awaited`,
      async (store) => {
        const { run, isThere } = await call.prepare(store);
        const tx = await store.beginTx();
        const running = run(tx);
        await Promise.all([running, tx.commit()]);
        await until(isThere, `the effect of ${call.name}`);
      },
    );

    for (const end of ["commit", "rollback"] as const) {
      testStore(harness, `tx.${call.name}() rejects after tx.${end}()`, async (store) => {
        const { run, isThere } = await call.prepare(store);
        const tx = await store.beginTx();
        await tx[end]();
        await assertRejects(() => run(tx), ClosedError);
        assertFalse(await isThere());
      });
    }
  }

  testStore(
    harness,
    "tx.assertLockTx() is true for a lock that is held",
    async (store, database) => {
      const lock = await store.tryLock("report", "host-1", 60_000);
      assertExists(lock);
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      assertEquals(await tx.assertLockTx(lock), true);
      await tx.commit();
      assertEquals(await database.business.list(), ["o-1"]);
      await assertRejects(() => tx.assertLockTx(lock), ClosedError);
    },
  );

  testStore(
    harness,
    "tx.commit() makes a business write and many messages visible at once",
    async (store, database) => {
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      const job = await tx.enqueueTx("mail", {}, { to: "a" });
      const message = await tx.outboxEnqueueTx("mail", {}, { to: "b" });
      const offset = await tx.publishTx("orders", { id: "o-1" });
      await tx.saveOffsetTx("orders", "billing", offset);
      await tx.commit();

      assertEquals((await store.queue("mail").getJob(job))?.payload, { to: "a" });
      assertEquals((await store.outbox("mail").getJob(message))?.payload, { to: "b" });
      assertEquals((await store.stream("orders").readSince(0, 9))[0]?.offset, offset);
      assertEquals(await store.stream("orders").getOffset("billing"), offset);
      assertEquals(await database.business.list(), ["o-1"]);
    },
  );

  testStore(
    harness,
    "tx.enqueueTx() and tx.publishTx() give ids in the order of the calls",
    async (store) => {
      const tx = await store.beginTx();
      const ids = await Promise.all([1, 2, 3].map((n) => tx.enqueueTx("mail", {}, n)));
      const offsets = await Promise.all([1, 2, 3].map((n) => tx.publishTx("orders", n)));
      await tx.commit();
      for (const numbers of [ids, offsets]) {
        assertEquals(numbers, numbers.toSorted((a, b) => a - b));
      }
      const events = await store.stream("orders").readSince(0, 9);
      assertEquals(events.map((event) => event.offset), offsets);
      assertEquals(events.map((event) => event.payload), [1, 2, 3]);
    },
  );

  testStore(harness, "store reads see committed rows only while a tx is open", async (store) => {
    const offset = await store.stream("orders").publish("old");
    const tx = await store.beginTx();
    const job = await tx.enqueueTx("mail", {}, "hello");
    const message = await tx.outboxEnqueueTx("mail", {}, "hello");
    await tx.publishTx("orders", "new");
    await tx.saveOffsetTx("orders", "billing", offset);

    const orders = store.stream("orders");
    assertEquals(await store.queue("mail").getJob(job), undefined);
    assertEquals((await store.queue("mail").stats()).ready, 0);
    assertEquals(await store.outbox("mail").getJob(message), undefined);
    assertEquals((await orders.readSince(0, 9)).map((event) => event.payload), ["old"]);
    assertEquals((await orders.readFromConsumer("billing", 9)).length, 1);
    assertEquals(await orders.getOffset("billing"), 0);
    assertEquals(await orders.info(), { head: offset, first: offset, consumers: [] });
    await tx.rollback();
  });

  testStore(
    harness,
    "an uncommitted tx.notifyTx() wakes nobody, the commit does",
    async (store, database) => {
      const other = await database.open();
      const receivers = [await store.listen("news"), await other.listen("news")];
      const tx = await store.beginTx();
      let isCommitting = false;
      const woken = receivers.map((receiver) => receiver.recv().then(() => isCommitting));
      await tx.notifyTx("news");
      await tx.enqueueTx("mail", {}, "hello");
      for (const receiver of receivers) assertEquals(receiver.tryRecv(), undefined);
      isCommitting = true;
      await tx.commit();
      assertEquals(await soon(Promise.all(woken), "the wakes"), [true, true]);
    },
  );

  testStore(harness, "a call outside a tx never becomes part of it", async (store, database) => {
    const [queue, orders] = [store.queue("mail"), store.stream("orders")];
    const offset = await orders.publish("old");
    const tx = await store.beginTx();
    await database.business.insert(tx.connection, "o-1");
    const calls = Promise.all([
      queue.enqueue("hello"),
      orders.publish("new"),
      orders.saveOffset("billing", offset),
      store.tryLock("report", "host-1", 60_000),
      store.notify("news"),
    ]);
    await tx.enqueueTx("mail", {}, "ghost");
    await tx.rollback();

    const [id, published, isSaved, lock] = await soon(calls, "the calls");
    assertEquals((await queue.getJob(id))?.payload, "hello");
    assertEquals((await queue.stats()).ready, 1);
    assertEquals((await orders.readSince(offset, 9)).map((event) => event.offset), [published]);
    assertEquals([isSaved, await orders.getOffset("billing")], [true, offset]);
    assertEquals(await lock?.release(), true);
  });

  testStore(harness, "tx.connection throws once the tx is over", async (store) => {
    const tx = await store.beginTx();
    await tx.commit();
    assertThrows(() => tx.connection, ClosedError);
    const another = await store.beginTx();
    await another.rollback();
    assertThrows(() => another.connection, ClosedError);
  });

  for (const end of ["commit", "rollback"] as const) {
    testStore(harness, `tx.commit() and tx.rollback() reject after tx.${end}()`, async (store) => {
      const tx = await store.beginTx();
      await tx[end]();
      await assertRejects(() => tx.commit(), ClosedError);
      await assertRejects(() => tx.rollback(), ClosedError);
    });
  }

  testStore(
    harness,
    "tx.commit() lands once when it is called twice at the same time",
    async (store) => {
      const tx = await store.beginTx();
      const id = await tx.enqueueTx("mail", {}, "hello");
      const ends = await Promise.allSettled([tx.commit(), tx.commit(), tx.rollback()]);
      assertEquals(ends.map((end) => end.status), ["fulfilled", "rejected", "rejected"]);
      for (const end of ends.slice(1)) {
        assertInstanceOf(end.status === "rejected" && end.reason, ClosedError);
      }
      assertExists(await store.queue("mail").getJob(id));
    },
  );

  testStore(harness, "disposing an open tx rolls back", async (store, database) => {
    const before = await database.countRows();
    const tx = await store.beginTx();
    await database.business.insert(tx.connection, "o-1");
    await tx.enqueueTx("mail", {}, "hello");
    await tx[Symbol.asyncDispose]();
    assertEquals(await database.countRows(), before);
    assertEquals(await database.business.list(), []);
    await assertRejects(() => tx.enqueueTx("mail", {}, "late"), ClosedError);
  });

  testStore(harness, "disposing a tx that is over does nothing", async (store) => {
    const committed = await store.beginTx();
    const id = await committed.enqueueTx("mail", {}, "hello");
    await committed.commit();
    await committed[Symbol.asyncDispose]();
    const undone = await store.beginTx();
    await undone.rollback();
    await undone[Symbol.asyncDispose]();
    const closed = await store.beginTx();
    await store.close();
    await closed[Symbol.asyncDispose]();
    await closed[Symbol.asyncDispose]();
    assertGreater(id, 0);
  });

  testStore(
    harness,
    "a tx that is abandoned is rolled back at its timeout",
    async (store, database) => {
      const tx = await store.beginTx({ timeout: 50 });
      await database.business.insert(tx.connection, "o-1");
      await tx.enqueueTx("mail", {}, "hello");
      await until(async () => (await store.status()).transactions.length === 0, "the rollback");

      const error = await assertRejects(() => tx.enqueueTx("mail", {}, "late"), ClosedError);
      assertStringIncludes(error.message, "transactions.ts");
      for (const call of [() => tx.commit(), () => tx.rollback()]) {
        assertStringIncludes((await assertRejects(call, ClosedError)).message, "transactions.ts");
      }
      assertEquals(await database.business.list(), []);
      assertEquals((await store.queue("mail").stats()).ready, 0);
      await tx[Symbol.asyncDispose]();
    },
  );

  testStore(
    harness,
    "the end of an abandoned tx gives way to those who wait",
    async (store) => {
      const abandoned = await store.beginTx();
      const id = await soon(store.queue("mail").enqueue("hello"), "the enqueue");
      assertExists(await store.queue("mail").getJob(id));
      await soon(store.transaction((tx) => tx.enqueueTx("mail", {}, "more")), "the transaction");
      await abandoned[Symbol.asyncDispose]();
    },
    { txTimeout: 50 },
  );

  testStore(
    harness,
    "beginTx({ timeout }) wins over the timeout of the store",
    async (store) => {
      const patient = await store.beginTx({ timeout: Infinity });
      if (harness.traits.concurrentTransactions) {
        const abandoned = await store.beginTx();
        await until(async () => (await store.status()).transactions.length === 1, "the rollback");
        await abandoned[Symbol.asyncDispose]();
      } else {
        // What waits behind the patient one would have been let in when the store's timeout had won.
        const late = new Date(Date.now() + 60);
        await until(() => new Date() > late, "the timeout of the store");
      }
      await patient.commit();
    },
    { txTimeout: 20 },
  );
}
