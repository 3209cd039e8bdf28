import {
  assert,
  assertEquals,
  assertExists,
  assertFalse,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import {
  ClosedError,
  DatabaseError,
  type Job,
  type JoinedTx,
  type Lock,
  PayloadTooLargeError,
  type Store,
  type TxHandle,
} from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { claimed, lapsed } from "./tx_calls.ts";
import { soon, until } from "./wait.ts";

/** What a transaction survives, and what dooms it. */
export function txFailures(harness: Harness): void {
  testStore(
    harness,
    "a notify payload over the limit leaves the tx usable",
    async (store, database) => {
      const { notifyLimit } = harness.traits;
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      const text = "é".repeat(5_000);
      if (notifyLimit === undefined) await tx.notifyTx("news", text);
      else {
        const error = await assertRejects(() => tx.notifyTx("news", text), PayloadTooLargeError);
        assertEquals(error.limit, notifyLimit);
      }
      await tx.commit();
      assertEquals(await database.business.list(), ["o-1"]);
    },
  );

  testStore(
    harness,
    "an offset above the head is a RangeError that leaves the tx usable",
    async (store, database) => {
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      await assertRejects(() => tx.saveOffsetTx("orders", "billing", 1), RangeError, "1");
      const offset = await tx.publishTx("orders", "placed");
      await assertRejects(() => tx.saveOffsetTx("orders", "billing", offset + 1), RangeError);
      assertEquals(await tx.saveOffsetTx("orders", "billing", offset), true);
      await tx.commit();
      assertEquals(await store.stream("orders").getOffset("billing"), offset);
      assertEquals(await database.business.list(), ["o-1"]);
    },
  );

  for (const [how, lose] of lostClaims) {
    for (const [name, call] of finishes) {
      testStore(harness, `tx.${name}() of a job ${how} dooms the tx`, async (store, database) => {
        const job = await lose(store);
        const tx = await store.beginTx();
        await database.business.insert(tx.connection, "o-1");
        await tx.enqueueTx("other", {}, "ghost");
        assertEquals(await call(tx, job), false);
        await assertDoomed(tx, `job ${job.id}`);
        assertEquals(await database.business.list(), []);
        assertEquals((await store.queue("other").stats()).ready, 0);
      });
    }

    testStore(harness, `ifLost: "ignore" spares the tx a job ${how}`, async (store, database) => {
      const job = await lose(store);
      const queue = store.queue("mail");
      const before = await queue.getJob(job.id);
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      for (const [, call] of finishes) {
        assertEquals(await call(tx, job, { ifLost: "ignore" }), false);
      }
      await tx.commit();
      assertEquals(await database.business.list(), ["o-1"]);
      assertEquals((await queue.getJob(job.id))?.state, before?.state);
    });
  }

  testStore(
    harness,
    "tx.commit() rejects when a claim turns out lost that was not awaited",
    async (store, database) => {
      const { job } = await lapsed(store);
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      const acked = tx.ackTx(job);
      await assertRejects(() => tx.commit(), ClosedError);
      assertEquals(await acked, false);
      assertEquals(await database.business.list(), []);
    },
  );

  testStore(
    harness,
    "a lost claim in its work makes store.transaction() reject",
    async (store, database) => {
      const { job } = await lapsed(store);
      let runs = 0;
      const transaction = store.transaction(async (tx) => {
        runs++;
        await database.business.insert(tx.connection, "o-1");
        await tx.ackTx(job);
      }, { retries: 3 });
      await assertRejects(() => transaction, ClosedError);
      assertEquals(runs, 1);
      assertEquals(await database.business.list(), []);
    },
  );

  testStore(harness, "a rolled-back tx leaves the claim with its holder", async (store) => {
    for (const [, call] of finishes) {
      const { queue, job } = await claimed(store);
      const tx = await store.beginTx();
      assertEquals(await call(tx, job), true);
      await tx.rollback();
      assertEquals((await queue.getJob(job.id))?.state, "claimed");
      assertEquals(await job.heartbeat(), true);
      assertEquals(await job.ack(), true);
    }
  });

  testStore(
    harness,
    "a job that was finished in a committed tx is finished for its holder",
    async (store) => {
      for (const [, call] of finishes) {
        const { job } = await claimed(store);
        const tx = await store.beginTx();
        assertEquals(await call(tx, job), true);
        await tx.commit();
        assertEquals([await job.ack(), await job.heartbeat(), await job.release()], [
          false,
          false,
          false,
        ]);
      }
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx({ from }) lands when that is what is stored",
    async (store) => {
      const orders = store.stream("orders");
      const [first, second] = await orders.publishMany([{ payload: 1 }, { payload: 2 }]);
      assertExists(first);
      assertExists(second);
      for (const [offset, from] of [[first, 0], [second, first]] as const) {
        const tx = await store.beginTx();
        assertEquals(await tx.saveOffsetTx(orders, "billing", offset, { from }), true);
        await tx.commit();
        assertEquals(await orders.getOffset("billing"), offset);
      }
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx({ from }) dooms the tx when another one was faster",
    async (store, database) => {
      const orders = store.stream("orders");
      const offset = await orders.publish("placed");
      for (
        const [from, saved] of [[offset - 1, offset], [offset + 1, offset], [0, offset]] as const
      ) {
        await orders.resetOffset("billing", saved);
        const tx = await store.beginTx();
        await database.business.insert(tx.connection, "o-1");
        assertEquals(await tx.saveOffsetTx("orders", "billing", offset, { from }), false);
        await assertDoomed(tx, "billing");
        assertEquals(await database.business.list(), []);
        assertEquals(await orders.getOffset("billing"), saved);
      }
    },
  );

  testStore(
    harness,
    "tx.saveOffsetTx() without from, or told to ignore it, spares the tx",
    async (store, database) => {
      const orders = store.stream("orders");
      const [first, second] = await orders.publishMany([{ payload: 1 }, { payload: 2 }]);
      await orders.saveOffset("billing", second!);
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      assertEquals(await tx.saveOffsetTx("orders", "billing", first!), false);
      const ignoring = { from: first!, ifLost: "ignore" } as const;
      assertEquals(await tx.saveOffsetTx("orders", "billing", second!, ignoring), false);
      await tx.commit();
      assertEquals(await database.business.list(), ["o-1"]);
      assertEquals(await orders.getOffset("billing"), second);
    },
  );

  testStore(
    harness,
    "two projections on one consumer apply each event once",
    async (store, database) => {
      const offset = await store.stream("orders").publish("placed");
      const other = await database.open();
      const outcomes: boolean[] = [];
      for (const [n, projection] of [store, other].entries()) {
        const tx = await projection.beginTx();
        await database.business.insert(tx.connection, `by-${n}`);
        outcomes.push(await tx.saveOffsetTx("orders", "billing", offset, { from: 0 }));
        await tx.commit().catch(() => {});
      }
      assertEquals(outcomes, [true, false]);
      assertEquals(await database.business.list(), ["by-0"]);
    },
  );

  for (const [how, lose] of lostLocks) {
    testStore(
      harness,
      `tx.assertLockTx() of a lock ${how} dooms the tx`,
      async (store, database) => {
        const lock = await lose(store);
        const tx = await store.beginTx();
        await database.business.insert(tx.connection, "o-1");
        await assertRejects(() => tx.assertLockTx(lock), ClosedError, "report");
        await assertDoomed(tx, "report");
        assertEquals(await database.business.list(), []);

        const tolerant = await store.beginTx();
        await database.business.insert(tolerant.connection, "o-2");
        assertEquals(await tolerant.assertLockTx(lock, { ifLost: "ignore" }), false);
        await tolerant.commit();
        assertEquals(await database.business.list(), ["o-2"]);
      },
    );
  }

  testStore(
    harness,
    "tx.assertLockTx() keeps the lock from others until the commit",
    async (store, database) => {
      const other = await database.open();
      const lock = await store.tryLock("report", "host-1", 100);
      assertExists(lock);
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      assertEquals(await tx.assertLockTx(lock), true);
      await until(() => Date.now() > lock.expiresAt.getTime() + 10, "the end of the lock's time");
      let isCommitted = false;
      const answer = other.tryLock("report", "host-2", 60_000)
        .then((taken) => ({ taken, isEarly: taken !== undefined && !isCommitted }));
      await store.status();
      isCommitted = true;
      await tx.commit();
      const { taken, isEarly } = await soon(answer, "the answer to the second holder");
      assertFalse(isEarly);
      assertEquals(await database.business.list(), ["o-1"]);
      // Refused instead of kept waiting: then it is free now.
      assertExists(taken ?? await other.tryLock("report", "host-2", 60_000));
    },
  );

  testStore(
    harness,
    "a failed business statement leaves no message behind",
    async (store, database) => {
      const before = await database.countRows();
      const tx = await store.beginTx();
      await tx.enqueueTx("mail", {}, "hello");
      await database.business.fail(tx.connection);
      if (harness.traits.survivesFailedStatement) {
        assertExists(await tx.enqueueTx("mail", {}, "more"));
        await tx.rollback();
      } else {
        const error = await assertRejects(() => tx.enqueueTx("mail", {}, "more"), DatabaseError);
        assertInstanceOf(error.cause, Error);
        assertInstanceOf((await assertRejects(() => tx.commit(), DatabaseError)).cause, Error);
      }
      assertEquals(await database.countRows(), before);
    },
  );

  if (!harness.traits.survivesFailedStatement) {
    testStore(
      harness,
      "tx.commit() rejects when a business statement has failed",
      async (store, database) => {
        const before = await database.countRows();
        const tx = await store.beginTx();
        await tx.enqueueTx("mail", {}, "hello");
        await database.business.fail(tx.connection);
        assertEquals(
          (await assertRejects(() => tx.commit(), DatabaseError)).outcome,
          "not-applied",
        );
        assertEquals(await database.countRows(), before);
      },
    );
  }
}

/** Later calls and the commit reject with what happened first. */
async function assertDoomed(tx: TxHandle<unknown>, fact: string): Promise<void> {
  const enqueue = () => tx.enqueueTx("mail", {}, "late");
  const later = [enqueue, () => tx.commit(), enqueue, () => tx.commit()];
  for (const call of later) {
    const error = await assertRejects(call, ClosedError);
    assertInstanceOf(error.cause, ClosedError);
    assertStringIncludes(error.cause.message, fact);
  }
  await tx[Symbol.asyncDispose]();
}

type Lose = (store: Store<unknown>) => Promise<Job>;

/** The ways a claim can be lost. */
const lostClaims: readonly (readonly [string, Lose])[] = [
  ["whose lease has lapsed", async (store) => (await lapsed(store)).job],
  ["that was claimed again under the same name", async (store) => {
    const { queue, job } = await lapsed(store);
    assertExists(await queue.claimOne(job.worker));
    return job;
  }],
  ["that was acked before", async (store) => {
    const { job } = await claimed(store);
    assert(await job.ack());
    return job;
  }],
  ["that was cancelled", async (store) => {
    const { queue, job } = await claimed(store);
    assert(await queue.cancel(job.id));
    return job;
  }],
];

type Finish = (
  tx: JoinedTx<unknown>,
  job: Job,
  options?: { readonly ifLost: "ignore" },
) => Promise<boolean>;

/** The calls that finish a claim. */
const finishes: readonly (readonly [string, Finish])[] = [
  ["ackTx", (tx, job, options) => tx.ackTx(job, options)],
  ["retryTx", (tx, job, options) => tx.retryTx(job, { delay: 0, ...options })],
  ["failTx", (tx, job, options) => tx.failTx(job, "broken", options)],
];

/** The ways a lock can be lost. */
const lostLocks: readonly (readonly [string, (store: Store<unknown>) => Promise<Lock>])[] = [
  ["whose time is over", lapsedLock],
  ["that another holder has taken", async (store) => {
    const lock = await lapsedLock(store);
    assertExists(await store.tryLock("report", lock.owner, 60_000));
    return lock;
  }],
  ["that was released", async (store) => {
    const lock = await store.tryLock("report", "host-1", 60_000);
    assertExists(lock);
    assert(await lock.release());
    return lock;
  }],
];

async function lapsedLock(store: Store<unknown>): Promise<Lock> {
  const lock = await store.tryLock("report", "host-1", 20);
  assertExists(lock);
  await until(() => Date.now() > lock.expiresAt.getTime() + 10, "the end of the lock's time");
  return lock;
}
