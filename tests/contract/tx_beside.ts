import {
  assertEquals,
  assertExists,
  assertFalse,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { delay } from "@std/async";
import type { Store } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { claimed } from "./tx_calls.ts";
import { soon } from "./wait.ts";

/** Writes beside the tx of `store.transaction()`: which are refused while its work runs. */
export function txBeside(harness: Harness): void {
  testStore(
    harness,
    "a write beside the tx is refused after an await and in nested calls",
    async (store) => {
      const queue = store.queue("mail");
      const nested = async () => {
        await delay(1);
        return await Promise.all([deeper()]);
      };
      const deeper = async () => {
        await Promise.resolve();
        return await queue.enqueue("beside");
      };
      await store.transaction(async (tx) => {
        await tx.enqueueTx("mail", {}, "inside");
        await assertRejects(() => soon(queue.enqueue("beside")), TypeError, "tx.enqueueTx");
        await delay(1);
        await assertRejects(() => soon(queue.enqueue("beside")), TypeError, "tx.enqueueTx");
        await assertRejects(() => soon(nested()), TypeError, "tx.enqueueTx");
      });
      assertEquals((await queue.stats()).ready, 1);
    },
  );

  testStore(
    harness,
    "a refused write leaves the tx usable, and unhandled it rolls back",
    async (store, database) => {
      await store.transaction(async (tx) => {
        await assertRejects(() => store.notify("news"), TypeError);
        await database.business.insert(tx.connection, "o-1");
      });
      assertEquals(await database.business.list(), ["o-1"]);
      const careless = store.transaction(async (tx) => {
        await database.business.insert(tx.connection, "o-2");
        await store.queue("mail").enqueue("beside");
      }, { retries: 5 });
      await assertRejects(() => soon(careless), TypeError);
      assertEquals(await database.business.list(), ["o-1"]);
      assertEquals((await store.queue("mail").stats()).ready, 0);
    },
  );

  testDatabase(harness, "a write of another store is no concern of the tx", async (database) => {
    const store = await database.open();
    const elsewhere = await harness.create();
    try {
      const other = await elsewhere.open();
      await store.transaction(async (tx) => {
        await tx.enqueueTx("mail", {}, "here");
        await soon(other.queue("mail").enqueue("there"), "the enqueue elsewhere");
        await soon(
          other.transaction(async (inner) => {
            await inner.enqueueTx("mail", {}, "there too");
            await assertRejects(() => store.queue("mail").enqueue("beside"), TypeError);
            await assertRejects(() => other.queue("mail").enqueue("beside"), TypeError);
          }),
          "the transaction elsewhere",
        );
        await assertRejects(() => store.queue("mail").enqueue("beside"), TypeError);
      });
      assertEquals((await store.queue("mail").stats()).ready, 1);
      assertEquals((await other.queue("mail").stats()).ready, 2);
    } finally {
      await elsewhere[Symbol.asyncDispose]();
    }
  });

  testStore(
    harness,
    "a write of another store on the same database is not refused",
    async (store, database) => {
      const other = await database.open();
      const { written } = await store.transaction(async (tx) => {
        await tx.enqueueTx("mail", {}, "here");
        return { written: other.queue("mail").enqueue("there") };
      });
      assertExists(await store.queue("mail").getJob(await soon(written, "the enqueue")));
      assertEquals((await store.queue("mail").stats()).ready, 2);
    },
  );

  testStore(harness, "what outlives the work may write on its own", async (store) => {
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    let straggler: Promise<number> | undefined;
    await store.transaction(() => {
      straggler = over.then(() => store.queue("mail").enqueue("later"));
    });
    end();
    assertExists(straggler);
    assertExists(await store.queue("mail").getJob(await soon(straggler, "the straggler")));
  });

  testStore(
    harness,
    "calls that run at the same time are not taken for calls of the work",
    async (store) => {
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      const { promise: hasBegun, resolve: begin } = Promise.withResolvers<void>();
      const transaction = store.transaction(async (tx) => {
        await tx.enqueueTx("mail", {}, "inside");
        begin();
        await mayEnd;
      });
      await hasBegun;
      const calls = [
        store.queue("mail").enqueue("outside"),
        store.stream("orders").publish("outside"),
        store.transaction((tx) => tx.enqueueTx("mail", {}, "another")),
      ];
      await delay(1);
      end();
      await soon(Promise.all([transaction, ...calls]), "the calls");
      assertEquals((await store.queue("mail").stats()).ready, 3);
    },
  );

  testStore(
    harness,
    "reads, receivers and workers may be opened inside the work",
    async (store) => {
      const { promise: done, resolve } = Promise.withResolvers<unknown>();
      const { worker, receiver } = await store.transaction(async () => {
        assertFalse(await store.queue("mail").getJob(1));
        assertEquals(await store.stream("orders").readSince(0, 9), []);
        assertEquals((await store.status()).state, "open");
        return {
          receiver: await store.listen("news"),
          worker: store.queue("mail").work(async (job) => {
            await store.notify("news");
            resolve(job.payload);
          }),
        };
      });
      await store.queue("mail").enqueue("hello");
      assertEquals(await soon(done, "the handler"), "hello");
      assertEquals(await soon(receiver.recv(), "the wake"), { channel: "news" });
      await worker.stop();
    },
  );

  for (const [name, instead, prepare] of writes) {
    testStore(
      harness,
      `${name} inside the work of a transaction is a TypeError at once`,
      async (store, database) => {
        const write = await prepare(store);
        const before = await database.countRows();
        await store.transaction(async () => {
          const error = await assertRejects(
            async () => await soon(Promise.resolve(write())),
            TypeError,
          );
          if (instead !== undefined) assertStringIncludes(error.message, instead);
        });
        assertEquals(await database.countRows(), before);
        const outcome = await write().then(() => undefined, (error) => error);
        assertFalse(outcome instanceof TypeError, `still refused afterwards: ${outcome}`);
      },
    );
  }

  testStore(
    harness,
    "disposing a lock inside the work of a transaction does not throw",
    async (store) => {
      const lock = await store.tryLock("report", "host-1", 60_000);
      assertInstanceOf(lock, Object);
      await store.transaction(async () => await lock[Symbol.asyncDispose]());
    },
  );
}

type Prepare = (
  store: Store<unknown>,
) => Promise<() => Promise<unknown>> | (() => Promise<unknown>);

/** Every call that writes, the way out its refusal names, and the call once its stage is set. */
const writes: readonly (readonly [string, string | undefined, Prepare])[] = [
  ["store.notify()", "tx.notifyTx", (store) => () => store.notify("news")],
  ["store.tryLock()", "tx.assertLockTx", (store) => () => store.tryLock("report", "me", 9_000)],
  ["store.beginTx()", "tx", (store) => async () => await (await store.beginTx()).rollback()],
  ["store.transaction()", "tx", (store) => () => store.transaction(() => {})],
  ["queue.enqueue()", "tx.enqueueTx", (store) => () => store.queue("mail").enqueue(1)],
  [
    "queue.enqueueMany()",
    "tx.enqueueManyTx",
    (store) => () => store.queue("mail").enqueueMany([1]),
  ],
  ["queue.claimOne()", undefined, (store) => () => store.queue("mail").claimOne("w-1")],
  ["queue.claimBatch()", undefined, (store) => () => store.queue("mail").claimBatch("w-1", 9)],
  ["queue.ackBatch()", "tx.ackTx", async (store) => {
    const { queue, job } = await claimed(store);
    return () => queue.ackBatch([job]);
  }],
  ["queue.cancel()", "tx.cancelTx", (store) => () => store.queue("mail").cancel(1)],
  ["queue.sweepExpired()", undefined, (store) => () => store.queue("mail").sweepExpired()],
  ["queue.requeue()", undefined, (store) => () => store.queue("mail").requeue(1)],
  ["queue.purgeDead()", undefined, (store) => () => store.queue("mail").purgeDead()],
  ["job.ack()", "tx.ackTx", async (store) => {
    const { job } = await claimed(store);
    return () => job.ack();
  }],
  ["job.retry()", "tx.retryTx", async (store) => {
    const { job } = await claimed(store);
    return () => job.retry();
  }],
  ["job.fail()", "tx.failTx", async (store) => {
    const { job } = await claimed(store);
    return () => job.fail();
  }],
  ["job.heartbeat()", undefined, async (store) => {
    const { job } = await claimed(store);
    return () => job.heartbeat();
  }],
  ["job.release()", undefined, async (store) => {
    const { job } = await claimed(store);
    return () => job.release();
  }],
  ["stream.publish()", "tx.publishTx", (store) => () => store.stream("orders").publish(1)],
  [
    "stream.publishWithKey()",
    "tx.publishWithKeyTx",
    (store) => () => store.stream("orders").publishWithKey("k", 1),
  ],
  [
    "stream.publishMany()",
    "tx.publishManyTx",
    (store) => () => store.stream("orders").publishMany([{ payload: 1 }]),
  ],
  [
    "stream.saveOffset()",
    "tx.saveOffsetTx",
    (store) => () => store.stream("orders").saveOffset("c", 0),
  ],
  ["stream.trimTo()", undefined, (store) => () => store.stream("orders").trimTo(0)],
  ["stream.resetOffset()", undefined, (store) => () => store.stream("orders").resetOffset("c", 0)],
  ["stream.dropConsumer()", undefined, (store) => () => store.stream("orders").dropConsumer("c")],
  ["receiver.saveOffset()", "tx.saveOffsetTx", async (store) => {
    const receiver = await store.stream("orders").subscribe("billing");
    return () => receiver.saveOffset();
  }],
  ["lock.renew()", undefined, async (store) => {
    const lock = await store.tryLock("report", "host-1", 60_000);
    assertExists(lock);
    return () => lock.renew(60_000);
  }],
  ["lock.release()", undefined, async (store) => {
    const lock = await store.tryLock("report", "host-1", 60_000);
    assertExists(lock);
    return () => lock.release();
  }],
  ["outbox.enqueue()", "tx.outboxEnqueueTx", (store) => () => store.outbox("mail").enqueue(1)],
  ["outbox.runOnce()", undefined, (store) => () => store.outbox("mail").runOnce("w-1", () => {})],
  ["outbox.cancel()", undefined, (store) => () => store.outbox("mail").cancel(1)],
  ["outbox.requeue()", undefined, (store) => () => store.outbox("mail").requeue(1)],
  ["outbox.purgeDead()", undefined, (store) => () => store.outbox("mail").purgeDead()],
  ["outbox.sweepExpired()", undefined, (store) => () => store.outbox("mail").sweepExpired()],
];
