import { assertEquals, assertRejects, assertStrictEquals, assertStringIncludes } from "@std/assert";
import { delay } from "@std/async";
import { ClosedError, DatabaseError, type JoinedTx } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { soon } from "./wait.ts";

/** `store.transaction()`: its value, its end, its retries, and the writes it refuses beside it. */
export function txScope(harness: Harness): void {
  testStore(
    harness,
    "store.transaction() commits and gives the value of its work",
    async (store, database) => {
      const id = await store.transaction(async (tx) => {
        await database.business.insert(tx.connection, "o-1");
        return await tx.enqueueTx("mail", {}, "hello");
      });
      assertEquals((await store.queue("mail").getJob(id))?.payload, "hello");
      assertEquals(await database.business.list(), ["o-1"]);
      assertEquals(await store.transaction(() => "no promise"), "no promise");
      assertEquals(await store.transaction(() => {}), undefined);
    },
  );

  testStore(
    harness,
    "store.transaction() rolls back and rethrows what its work throws",
    async (store, database) => {
      const before = await database.countRows();
      const thrown = [new Error("sold out"), "a string", undefined];
      for (const reason of thrown) {
        let caught: unknown = "nothing";
        await store.transaction(async (tx) => {
          await database.business.insert(tx.connection, "o-1");
          await tx.enqueueTx("mail", {}, "hello");
          throw reason;
        }).catch((error) => caught = error);
        assertStrictEquals(caught, reason);
      }
      const failure = new RangeError("at once");
      const work = (): never => {
        throw failure;
      };
      assertStrictEquals(await assertRejects(() => store.transaction(work)), failure);
      assertEquals(await database.countRows(), before);
      assertEquals(await database.business.list(), []);
    },
  );

  testStore(harness, "the tx of store.transaction() is over when its work is", async (store) => {
    let kept: JoinedTx<unknown> | undefined;
    await store.transaction((tx) => void (kept = tx));
    await assertRejects(async () => await kept?.enqueueTx("mail", {}, "late"), ClosedError);
    await assertRejects(() =>
      store.transaction((tx) => {
        kept = tx;
        throw new Error("sold out");
      })
    );
    await assertRejects(async () => await kept?.publishTx("orders", "late"), ClosedError);
  });

  testStore(
    harness,
    "store.transaction() rejects when the timeout ends its work",
    async (store, database) => {
      const error = await assertRejects(() =>
        store.transaction(async (tx) => {
          await database.business.insert(tx.connection, "o-1");
          await delay(100);
        }, { timeout: 20 }), ClosedError);
      assertStringIncludes(error.message, "tx_scope.ts");
      assertEquals(await database.business.list(), []);
    },
  );

  testStore(
    harness,
    "store.transaction({ retries }) repeats after a retryable error only",
    async (store, database) => {
      const busy = new DatabaseError("busy", { retryable: true });
      let runs = 0;
      const value = await store.transaction(async (tx) => {
        await database.business.insert(tx.connection, `o-${++runs}`);
        await tx.enqueueTx("mail", {}, runs);
        if (runs < 3) throw busy;
        return runs;
      }, { retries: 5 });
      assertEquals([value, runs], [3, 3]);
      assertEquals(await database.business.list(), ["o-3"]);
      assertEquals((await store.queue("mail").stats()).ready, 1);

      const finals = [
        new DatabaseError("full"),
        new DatabaseError("lost", { outcome: "unknown" }),
        new ClosedError("over"),
        new Error("sold out"),
        Object.assign(new Error("not ours"), { retryable: true }),
      ];
      for (const failure of finals) {
        runs = 0;
        const work = () => {
          runs++;
          throw failure;
        };
        const rejection = await assertRejects(() => store.transaction(work, { retries: 5 }));
        assertStrictEquals(rejection, failure);
        assertEquals(runs, 1);
      }
    },
  );

  testStore(
    harness,
    "store.transaction() gives up after its retries, without any at once",
    async (store) => {
      for (
        const [options, expected] of [[{ retries: 2 }, 3], [{ retries: 0 }, 1], [{}, 1]] as const
      ) {
        let runs = 0;
        const failures: DatabaseError[] = [];
        const work = () => {
          if (++runs > 9) throw new Error("repeated without end");
          failures.push(new DatabaseError(`busy ${runs}`, { retryable: true }));
          throw failures.at(-1);
        };
        const error = await assertRejects(() => store.transaction(work, options));
        assertStrictEquals(error, failures.at(-1));
        assertEquals(runs, expected);
      }
    },
  );

  testStore(harness, "an aborted signal ends the retries of store.transaction()", async (store) => {
    const controller = new AbortController();
    const reason = new Error("the request was cancelled");
    let runs = 0;
    const work = () => {
      if (++runs === 2) controller.abort(reason);
      throw new DatabaseError("busy", { retryable: true });
    };
    const options = { retries: 1_000_000, signal: controller.signal };
    assertStrictEquals(await assertRejects(() => soon(store.transaction(work, options))), reason);
    assertEquals(runs, 2);
  });

  testStore(
    harness,
    "store.transaction() checks its arguments before it runs anything",
    async (store) => {
      let runs = 0;
      const work = () => void runs++;
      for (const retries of [-1, 1.5, NaN, Infinity]) {
        await assertRejects(() => store.transaction(work, { retries }), RangeError, "retries");
      }
      const wrong = [{ retries: "3" }, { retry: 3 }, 3, null];
      for (const options of wrong as object[]) {
        await assertRejects(() => store.transaction(work, options), TypeError);
      }
      for (const nothing of [undefined, null, "work", {}] as unknown as (() => void)[]) {
        await assertRejects(() => store.transaction(nothing), TypeError, "work");
      }
      assertEquals(runs, 0);
    },
  );
}
