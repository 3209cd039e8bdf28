import { assert, assertEquals, assertRejects } from "@std/assert";
import { delay } from "@std/async";
import { ClosedError, InvalidNameError, type Lock, ReservedNameError } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { soon, until } from "./wait.ts";

/** Locks: one holder inside the TTL, and a token for what outlives it. */
export function locks(harness: Harness): void {
  holding(harness);
  lapsing(harness);
  refusals(harness);
  inTransactions(harness);
}

function holding(harness: Harness): void {
  testStore(
    harness,
    "store.tryLock() gives the lock to one holder and nothing to others, the same owner among them",
    async (store, database) => {
      const other = await database.open();
      const before = Date.now();
      const lock = await store.tryLock("report", "host-1", 60_000);
      assert(lock !== undefined);
      assertEquals([lock.name, lock.owner], ["report", "host-1"]);
      assert(Number.isSafeInteger(lock.token));
      // The database's clock may be another machine's.
      assert(Math.abs(lock.expiresAt.getTime() - before - 60_000) < 30_000);
      assertEquals(await store.tryLock("report", "host-1", 60_000), undefined);
      assertEquals(await store.tryLock("report", "host-2", 60_000), undefined);
      assertEquals(await other.tryLock("report", "host-1", 60_000), undefined);
    },
  );

  testStore(
    harness,
    "lock.release() frees the lock once",
    async (store, database) => {
      const other = await database.open();
      const lock = await take(store, "report");
      assertEquals(await lock.release(), true);
      assertEquals(await lock.release(), false);
      assertEquals(await lock.renew(60_000), false);
      const next = await other.tryLock("report", "host-2", 60_000);
      assert(next !== undefined);
      assertEquals(await lock.release(), false);
      assertEquals(await store.tryLock("report", "host-3", 60_000), undefined);
    },
  );

  testStore(
    harness,
    "a stale holder can neither renew nor release the lock of the next, of the same owner either",
    async (store) => {
      const stale = await take(store, "report", 20);
      const lock = await until(() => store.tryLock("report", stale.owner, 60_000));
      assertEquals(await stale.renew(60_000), false);
      assertEquals(await stale.release(), false);
      await stale[Symbol.asyncDispose]();
      assertEquals(await store.tryLock("report", stale.owner, 60_000), undefined);
      assertEquals(await lock.renew(60_000), true);
      assertEquals(await lock.release(), true);
    },
  );

  testStore(
    harness,
    "lock.token strictly increases, across release, expiry and stores",
    async (store, database) => {
      const other = await database.open();
      const tokens: number[] = [];
      for (let round = 0; round < 3; round++) {
        for (const holder of [store, other]) {
          const released = await take(holder, "report");
          await released.release();
          const lapsed = await take(holder, "report", 1);
          const next = await until(() => other.tryLock("report", "next", 60_000));
          await next.release();
          tokens.push(released.token, lapsed.token, next.token);
        }
      }
      assertEquals(tokens, [...new Set(tokens)].toSorted((a, b) => a - b));
    },
  );

  testStore(
    harness,
    "locks of different names have nothing in common, whatever the names",
    async (store) => {
      const names = [
        "a",
        "A",
        "a ",
        "日本語",
        'a"b',
        "a;drop",
        "😀".repeat(200),
        "x".repeat(1_000),
      ];
      for (const name of names) await take(store, name);
      for (const name of names) assertEquals(await store.tryLock(name, "other", 60_000), undefined);
    },
  );

  testDatabase(
    harness,
    "of many who try at the same time one gets the lock",
    async (database) => {
      const stores = [await database.open(), await database.open()];
      for (let round = 0; round < 5; round++) {
        const tries = Array.from(
          { length: 20 },
          (_, number) => stores[number % 2]!.tryLock("report", `host-${number}`, 60_000),
        );
        const taken = (await Promise.all(tries)).filter((lock) => lock !== undefined);
        assertEquals(taken.length, 1);
        await taken[0]!.release();
      }
    },
  );

  testStore(harness, "disposing a lock releases it", async (store, database) => {
    const lock = await take(store, "report");
    await lock[Symbol.asyncDispose]();
    const next = await take(store, "report");
    // Not theirs any more, and disposing never throws.
    await lock[Symbol.asyncDispose]();
    assertEquals(await store.tryLock("report", "host-3", 60_000), undefined);
    await next.release();
    const other = await database.open();
    const orphan = await take(other, "report");
    await other.close();
    await orphan[Symbol.asyncDispose]();
  });
}

function lapsing(harness: Harness): void {
  testStore(
    harness,
    "a lock that is not renewed lapses silently, and nothing brings it back",
    async (store) => {
      const lock = await take(store, "report", 30);
      await delay(60);
      assertEquals(await lock.renew(60_000), false);
      const next = await take(store, "report");
      assertEquals(await lock.release(), false);
      assertEquals(await next.release(), true);
    },
  );

  testStore(
    harness,
    "a lapsed lock that nobody took can still be released, once",
    async (store) => {
      const lock = await take(store, "report", 1);
      await delay(20);
      assertEquals(await lock.release(), true);
      assertEquals(await lock.release(), false);
    },
  );

  testStore(
    harness,
    "lock.renew() keeps the lock past the TTL it was taken with",
    async (store) => {
      const ttl = 100;
      // A round in which this machine was slower than the TTL proves nothing.
      await until(async () => {
        const lock = await until(() => store.tryLock("report", "holder", ttl));
        let renewedAt = performance.now();
        for (let count = 0; count < 10; count++) {
          await delay(ttl / 2);
          const other = await store.tryLock("report", "other", ttl);
          const isRenewed = other === undefined && await lock.renew(ttl);
          const isLate = performance.now() - renewedAt >= ttl * 0.9;
          renewedAt = performance.now();
          if (isRenewed) continue;
          assert(isLate, `the lock was lost at renewal ${count} although it came in time`);
          await other?.release();
          return false;
        }
        return true;
      }, "ten renewals in time");
    },
  );

  testStore(
    harness,
    "lock.renew() moves lock.expiresAt and leaves the token",
    async (store) => {
      const lock = await take(store, "report", 30_000);
      const { token, expiresAt } = lock;
      assertEquals(await lock.renew(90_000), true);
      assert(lock.expiresAt.getTime() - expiresAt.getTime() >= 60_000);
      assertEquals(lock.token, token);
      assertEquals(await store.tryLock("report", "other", 60_000), undefined);
    },
  );
}

function refusals(harness: Harness): void {
  testStore(
    harness,
    "store.tryLock() refuses what is no name, owner or TTL, and writes nothing",
    async (store, database) => {
      const rows = await database.countRows();
      await assertRejects(() => store.tryLock("", "owner", 1), InvalidNameError);
      await assertRejects(() => store.tryLock("a\0b", "owner", 1), InvalidNameError);
      await assertRejects(() => store.tryLock("x".repeat(1_001), "owner", 1), InvalidNameError);
      await assertRejects(() => store.tryLock("__alkstore_x", "owner", 1), ReservedNameError);
      await assertRejects(() => store.tryLock("report", "", 1), InvalidNameError);
      await assertRejects(() => store.tryLock(7 as never, "owner", 1), TypeError, "lock");
      await assertRejects(() => store.tryLock("report", 7 as never, 1), TypeError, "owner");
      for (const ttl of [0, -1, NaN, Infinity]) {
        await assertRejects(() => store.tryLock("report", "owner", ttl), RangeError, "ttl");
      }
      await assertRejects(() => store.tryLock("report", "owner", "1" as never), TypeError, "ttl");
      assertEquals(await database.countRows(), rows);
      assert(await store.tryLock("report", "__alkstore_owner", 60_000) !== undefined);
    },
  );

  testStore(
    harness,
    "lock.renew() refuses what is no TTL and keeps the lock",
    async (store) => {
      const lock = await take(store, "report");
      for (const ttl of [0, -1, NaN, Infinity]) {
        await assertRejects(() => lock.renew(ttl), RangeError, "ttl");
      }
      assertEquals(await lock.renew(60_000), true);
    },
  );
}

function inTransactions(harness: Harness): void {
  testStore(
    harness,
    "tx.assertLockTx() of a held lock lets the business write commit",
    async (store, { business }) => {
      const lock = await take(store, "report");
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      assertEquals(await tx.assertLockTx(lock), true);
      await tx.commit();
      assertEquals(await business.list(), ["o-1"]);
      assertEquals(await lock.renew(60_000), true);
    },
  );

  testStore(
    harness,
    "tx.assertLockTx() holds the lock to the commit, past its TTL",
    async (store, database) => {
      const other = await database.open();
      // A machine that is slower than the TTL takes it again.
      const { lock, tx } = await until(async () => {
        const lock = await until(() => store.tryLock("report", "host-1", 150));
        const tx = await store.beginTx();
        if (await tx.assertLockTx(lock, { ifLost: "ignore" })) return { lock, tx };
        await tx.rollback();
      });
      const happened: string[] = [];
      await until(() => Date.now() > lock.expiresAt.getTime() + 20);
      const taking = other.tryLock("report", "host-2", 60_000).then((next) => {
        happened.push(next === undefined ? "refused" : "taken");
      });
      await Promise.race([taking, delay(50)]);
      happened.push("committed");
      await tx.commit();
      await soon(taking);
      assert(happened.includes("refused") || happened.join() === "committed,taken", `${happened}`);
    },
  );

  for (const loss of ["released", "lapsed", "taken"]) {
    testStore(
      harness,
      `tx.assertLockTx() of a ${loss} lock loses the transaction with a ClosedError`,
      async (store, { business }) => {
        const lock = await take(store, "report", loss === "released" ? 60_000 : 20);
        if (loss === "released") await lock.release();
        if (loss === "lapsed") await delay(50);
        if (loss === "taken") await until(() => store.tryLock("report", "host-2", 60_000));
        const tx = await store.beginTx();
        await business.insert(tx.connection, "o-1");
        await assertRejects(() => tx.assertLockTx(lock), ClosedError, "report");
        await assertRejects(() => tx.publishTx("log", "o-1"), ClosedError);
        const error = await assertRejects(() => tx.commit(), ClosedError);
        assert(error.cause instanceof ClosedError);
        assertEquals(await business.list(), []);
      },
    );
  }

  testStore(
    harness,
    "tx.assertLockTx() of a lost lock says false when told to ignore it, and the tx goes on",
    async (store, { business }) => {
      const lock = await take(store, "report");
      await lock.release();
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      assertEquals(await tx.assertLockTx(lock, { ifLost: "ignore" }), false);
      await tx.commit();
      assertEquals(await business.list(), ["o-1"]);
    },
  );

  testStore(
    harness,
    "tx.assertLockTx() refuses what is no lock of this store, and the tx stays usable",
    async (store, database) => {
      const other = await database.open();
      const [lock, foreign] = [await take(store, "report"), await take(other, "other")];
      const tx = await store.beginTx();
      await assertRejects(() => tx.assertLockTx(foreign), TypeError, "another store");
      await assertRejects(() => tx.assertLockTx({} as never), TypeError, "lock");
      await assertRejects(() => tx.assertLockTx(lock, { lost: 1 } as never), TypeError, "lost");
      await assertRejects(
        () => tx.assertLockTx(lock, { ifLost: "commit" } as never),
        TypeError,
        "ifLost",
      );
      assertEquals(await tx.assertLockTx(lock), true);
      await tx.commit();
    },
  );

  testStore(
    harness,
    "a joined tx.assertLockTx() tells the caller of a lost lock by a ClosedError",
    async (store, database) => {
      const [lost, held] = [await take(store, "lost"), await take(store, "held")];
      await lost.release();
      const foreign = await database.beginForeign();
      try {
        const tx = await store.joinTx(foreign.connection);
        assertEquals(await tx.assertLockTx(held), true);
        assertEquals(await tx.assertLockTx(lost, { ifLost: "ignore" }), false);
        await assertRejects(() => tx.assertLockTx(lost), ClosedError, "lost");
        await foreign.rollback();
      } finally {
        await foreign.close();
      }
    },
  );
}

/** Takes a free lock. */
async function take(
  store: { tryLock(name: string, owner: string, ttl: number): Promise<Lock | undefined> },
  name: string,
  ttl = 60_000,
): Promise<Lock> {
  const lock = await store.tryLock(name, "host-1", ttl);
  assert(lock !== undefined, `lock ${name} is not free`);
  return lock;
}
