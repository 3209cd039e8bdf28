import {
  assertEquals,
  assertExists,
  assertFalse,
  assertRejects,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { ClosedError, type JoinedTx } from "../../mod.ts";
import { type ForeignTransaction, type Harness, type TestDatabase, testStore } from "./harness.ts";
import { lapsed, txCalls } from "./tx_calls.ts";
import { soon, until } from "./wait.ts";

/** The `*Tx` calls on a transaction that the caller opened and ends. */
export function joined(harness: Harness): void {
  for (const call of txCalls) {
    testStore(
      harness,
      `joined tx.${call.name}() commits and rolls back with its caller`,
      async (store, database) => {
        const { run, isThere } = await call.prepare(store);
        const before = await database.countRows();
        await inForeign(database, async (foreign) => {
          await database.business.insert(foreign.connection, "o-1");
          await run(await store.joinTx(foreign.connection));
          await foreign.rollback();
        });
        assertEquals(await database.countRows(), before);
        assertEquals(await database.business.list(), []);
        assertFalse(await isThere());

        await inForeign(database, async (foreign) => {
          await database.business.insert(foreign.connection, "o-1");
          await run(await store.joinTx(foreign.connection));
          await foreign.commit();
        });
        assertEquals(await database.business.list(), ["o-1"]);
        await until(isThere, `the effect of ${call.name}`);
      },
    );

    for (const end of ["commit", "rollback"] as const) {
      testStore(
        harness,
        `joined tx.${call.name}() rejects with ClosedError after its caller's ${end}`,
        async (store, database) => {
          const { run } = await call.prepare(store);
          const before = await database.countRows();
          await inForeign(database, async (foreign) => {
            const tx = await store.joinTx(foreign.connection);
            await foreign[end]();
            await assertRejects(() => run(tx), ClosedError);
          });
          assertEquals(await database.countRows(), before);
        },
      );
    }
  }

  testStore(harness, "joined tx.connection is the caller's", async (store, database) => {
    await inForeign(database, async (foreign) => {
      const tx = await store.joinTx(foreign.connection);
      assertStrictEquals(tx.connection, foreign.connection);
      await database.business.insert(tx.connection, "o-1");
      await foreign.commit();
    });
    assertEquals(await database.business.list(), ["o-1"]);
  });

  testStore(
    harness,
    "store.joinTx() gives no commit, no rollback and no dispose",
    async (store, database) => {
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        for (const member of ["commit", "rollback", Symbol.asyncDispose, Symbol.dispose]) {
          assertFalse(member in tx, String(member));
        }
        await foreign.rollback();
      });
    },
  );

  testStore(
    harness,
    "store.joinTx() rejects with ClosedError when no transaction is open",
    async (store, database) => {
      await inForeign(database, async (foreign) => {
        await foreign.commit();
        await assertRejects(() => store.joinTx(foreign.connection), ClosedError);
      });
    },
  );

  testStore(
    harness,
    "store.joinTx() rejects with TypeError what is no connection of its own",
    async (store) => {
      const others = [{}, () => {}, new Map(), undefined, null, 5, "app.db", {
        exec() {},
        prepare() {},
      }];
      for (const other of others) {
        await assertRejects(() => store.joinTx(other), TypeError);
      }
    },
  );

  testStore(
    harness,
    "store.joinTx() rejects with TypeError a connection of another database",
    async (store) => {
      const elsewhere = await harness.create();
      try {
        await (await elsewhere.open()).close();
        await inForeign(elsewhere, async (foreign) => {
          await assertRejects(() => store.joinTx(foreign.connection), TypeError);
          await foreign.rollback();
        });
      } finally {
        await elsewhere[Symbol.asyncDispose]();
      }
    },
  );

  testStore(
    harness,
    "store reads see nothing of a joined tx before its commit",
    async (store, database) => {
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        const id = await tx.enqueueTx("mail", {}, "hello");
        await tx.publishTx("orders", "placed");
        assertEquals(await store.queue("mail").getJob(id), undefined);
        assertEquals(await store.stream("orders").readSince(0, 9), []);
        await foreign.commit();
        assertEquals((await store.queue("mail").getJob(id))?.payload, "hello");
        assertEquals((await store.stream("orders").readSince(0, 9)).length, 1);
      });
    },
  );

  testStore(
    harness,
    "the wake of a joined tx follows its caller's commit, in every store",
    async (store, database) => {
      const other = await database.open();
      const receivers = [await store.listen("news"), await other.listen("news")];
      let isCommitting = false;
      const woken = receivers.map((receiver) => receiver.recv().then(() => isCommitting));
      await inForeign(database, async (foreign) => {
        await (await store.joinTx(foreign.connection)).notifyTx("news");
        for (const receiver of receivers) assertEquals(receiver.tryRecv(), undefined);
        isCommitting = true;
        await foreign.commit();
      });
      assertEquals(await soon(Promise.all(woken), "the wakes"), [true, true]);
    },
  );

  testStore(harness, "a joined tx that is rolled back wakes nobody", async (store, database) => {
    const other = await database.open();
    const receivers = [await store.listen("news"), await other.listen("news")];
    const marker = await other.listen("marker");
    for (const end of ["rollback", "commit"] as const) {
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        await tx.notifyTx(end === "rollback" ? "news" : "marker");
        await foreign[end]();
      });
    }
    // The marker took the way that the wake would have taken, and later.
    await soon(marker.recv(), "the marker");
    for (const receiver of receivers) assertEquals(receiver.tryRecv(), undefined);
  });

  testStore(
    harness,
    "a worker and a subscriber hear of the commit of a joined tx",
    async (store, database) => {
      const other = await database.open();
      const { promise: worked, resolve } = Promise.withResolvers<unknown>();
      const worker = other.queue("mail").work((job) => resolve(job.payload));
      const receiver = await other.stream("orders").subscribe("billing");
      const event = receiver.recv();
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        await tx.enqueueTx("mail", {}, "hello");
        await tx.publishTx("orders", "placed");
        await foreign.commit();
      });
      assertEquals(await soon(worked, "the handler"), "hello");
      assertEquals((await soon(event, "the event"))?.payload, "placed");
      await worker.stop();
    },
  );

  testStore(
    harness,
    "a lost claim on a joined tx rejects with ClosedError",
    async (store, database) => {
      const { job } = await lapsed(store);
      const calls: ((tx: JoinedTx<unknown>) => Promise<boolean>)[] = [
        (tx) => tx.ackTx(job),
        (tx) => tx.retryTx(job),
        (tx) => tx.failTx(job),
      ];
      for (const call of calls) {
        await inForeign(database, async (foreign) => {
          const tx = await store.joinTx(foreign.connection);
          await assertRejects(() => call(tx), ClosedError, String(job.id));
          await assertRejects(() => tx.enqueueTx("mail", {}, "late"), ClosedError);
          await foreign.rollback();
        });
      }
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        assertEquals(await tx.ackTx(job, { ifLost: "ignore" }), false);
        await tx.enqueueTx("other", {}, "hello");
        await foreign.commit();
      });
      assertEquals((await store.queue("other").stats()).ready, 1);
    },
  );

  testStore(
    harness,
    "an offset or a lock lost on a joined tx rejects with ClosedError",
    async (store, database) => {
      const offset = await store.stream("orders").publish("placed");
      const lock = await store.tryLock("report", "host-1", 60_000);
      assertExists(lock);
      await lock.release();
      const calls: ((tx: JoinedTx<unknown>) => Promise<boolean>)[] = [
        (tx) => tx.saveOffsetTx("orders", "billing", offset, { from: 7 }),
        (tx) => tx.assertLockTx(lock),
      ];
      for (const call of calls) {
        await inForeign(database, async (foreign) => {
          const tx = await store.joinTx(foreign.connection);
          await assertRejects(() => call(tx), ClosedError);
          await assertRejects(() => tx.enqueueTx("mail", {}, "late"), ClosedError);
          await foreign.rollback();
        });
      }
      assertEquals(await store.stream("orders").getOffset("billing"), 0);
    },
  );

  testStore(
    harness,
    "tx.assertLockTx() is true on a joined tx for a lock that is held",
    async (store, database) => {
      const lock = await store.tryLock("report", "host-1", 60_000);
      assertExists(lock);
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        assertEquals(await tx.assertLockTx(lock), true);
        await foreign.commit();
        await assertRejects(() => tx.assertLockTx(lock), ClosedError);
      });
    },
  );

  testStore(
    harness,
    "an argument that cannot be used leaves a joined tx usable",
    async (store, database) => {
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        await assertRejects(() => tx.enqueueTx("", {}, 1));
        await assertRejects(() => tx.enqueueTx("mail", { delay: -1 }, 1), RangeError);
        await assertRejects(() => tx.saveOffsetTx("orders", "billing", 99), RangeError);
        await tx.enqueueTx("mail", {}, "hello");
        await foreign.commit();
      });
      assertEquals((await store.queue("mail").stats()).ready, 1);
    },
  );

  testStore(
    harness,
    "one connection is joined again in its next transaction",
    async (store, database) => {
      await inForeign(database, async (foreign) => {
        const first = await store.joinTx(foreign.connection);
        const again = await store.joinTx(foreign.connection);
        await first.enqueueTx("mail", {}, 1);
        await again.enqueueTx("mail", {}, 2);
        await foreign.commit();
      });
      await inForeign(database, async (foreign) => {
        await (await store.joinTx(foreign.connection)).enqueueTx("mail", {}, 3);
        await foreign.commit();
      });
      assertEquals((await store.queue("mail").stats()).ready, 3);
    },
  );

  testStore(
    harness,
    "a joined tx is refused by a closed store and ends with its caller",
    async (store, database) => {
      await inForeign(database, async (foreign) => {
        const tx = await store.joinTx(foreign.connection);
        await database.business.insert(foreign.connection, "o-1");
        await soon(store.close(), "the close");
        await assertRejects(() => tx.enqueueTx("mail", {}, "late"), ClosedError);
        assertThrows(() => tx.connection, ClosedError);
        await assertRejects(() => store.joinTx(foreign.connection), ClosedError);
        await foreign.commit();
      });
      assertEquals(await database.business.list(), ["o-1"]);
      assertEquals((await (await database.open()).queue("mail").stats()).ready, 0);
    },
  );
}

/** Runs `work` in a transaction of the application's own, which `work` ends. */
async function inForeign(
  database: TestDatabase,
  work: (foreign: ForeignTransaction) => Promise<void>,
): Promise<void> {
  const foreign = await database.beginForeign();
  try {
    await work(foreign);
  } finally {
    await foreign.close();
  }
}
