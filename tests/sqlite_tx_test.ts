/** Transactions on SQLite: what dooms one, savepoints, and the caller's own connections. */

import { DatabaseSync } from "node:sqlite";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { delay } from "@std/async";
import type { SqliteConnection } from "../engines/sqlite.ts";
import { ClosedError, DatabaseError, type JoinedTx } from "../mod.ts";
import { txCalls } from "./contract/tx_calls.ts";
import { soon } from "./contract/wait.ts";
import { listOrders, makeOrders, type TestFile, testFile } from "./sqlite/test_file.ts";

for (const call of txCalls) {
  testFile(`a database error of tx.${call.name}() dooms the tx`, async (file) => {
    const store = await file.open();
    await makeOrders(store);
    const { run } = await call.prepare(store);
    const tx = await store.beginTx();
    tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run("o-1");
    sabotage(tx.connection);
    const first = await assertRejects(() => run(tx), DatabaseError, "sabotage");
    assertInstanceOf(first.cause, Error);
    assertEquals([first.retryable, first.outcome], [false, "not-applied"]);
    for (const later of [() => tx.notifyTx("news"), () => run(tx), () => tx.commit()]) {
      const error = await assertRejects(later, DatabaseError);
      assertEquals(error.cause, first);
    }
    await tx[Symbol.asyncDispose]();
    assertEquals(await listOrders(store), []);
  });
}

testFile("a doomed tx gives way to the next one at once", async (file) => {
  const store = await file.open();
  const tx = await store.beginTx();
  sabotage(tx.connection);
  await assertRejects(() => tx.enqueueTx("mail", {}, "hello"), DatabaseError);
  await soon(store.queue("mail").enqueue("hello"), "the enqueue");
  await assertRejects(() => tx.commit(), DatabaseError);
  await assertRejects(() => tx.commit(), ClosedError);
  assertEquals((await store.queue("mail").stats()).ready, 1);
});

testFile(
  "store.transaction() rejects with the error that doomed it, even when that was caught",
  async (file) => {
    const store = await file.open();
    await makeOrders(store);
    const transaction = store.transaction(async (tx) => {
      tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run("o-1");
      sabotage(tx.connection);
      await tx.enqueueTx("mail", {}, "hello").catch(() => {});
    }, { retries: 3 });
    const error = await assertRejects(() => transaction, DatabaseError);
    assertStringIncludes(String(error.cause), "sabotage");
    assertEquals(await listOrders(store), []);
  },
);

for (const end of ["COMMIT", "ROLLBACK"]) {
  testFile(`a ${end} by hand dooms the tx`, async (file) => {
    const store = await file.open();
    const tx = await store.beginTx();
    await tx.enqueueTx("mail", {}, "before");
    tx.connection.exec(end);
    await assertRejects(() => tx.enqueueTx("mail", {}, "after"), DatabaseError, "gone");
    await assertRejects(() => tx.commit(), DatabaseError);
    assertEquals((await store.queue("mail").stats()).ready, end === "COMMIT" ? 1 : 0);
    await soon(store.queue("mail").enqueue("later"), "the enqueue");
  });
}

testFile("a message that is rolled back to a savepoint is gone, and wakes nobody", async (file) => {
  const store = await file.open();
  const [news, marker] = [await store.listen("news"), await store.listen("marker")];
  const own = await store.beginTx();
  await inSavepoint(own.connection, own);
  await own.notifyTx("marker");
  await own.commit();
  await soon(marker.recv(), "the marker");
  assertEquals(news.tryRecv(), undefined);

  using app = new DatabaseSync(file.path);
  app.exec("BEGIN IMMEDIATE");
  const joined = await store.joinTx(app);
  await inSavepoint(app, joined);
  await joined.notifyTx("marker");
  app.exec("COMMIT");
  await soon(marker.recv(), "the marker");
  assertEquals(news.tryRecv(), undefined);
  assertEquals((await store.queue("mail").stats()).ready, 0);
  assertEquals(await store.stream("orders").readSince(0, 9), []);
});

testFile(
  "a deferred transaction that has read is retryable at once after another write",
  async (file) => {
    const store = await file.open({ writerTimeout: 600_000 });
    const child = await file.storekeeper();
    using app = new DatabaseSync(file.path);
    app.exec("CREATE TABLE orders (id TEXT PRIMARY KEY)");
    app.exec("BEGIN");
    app.prepare("SELECT count(*) FROM orders").get();
    await child.ask("enqueue", { queue: "mail", payloads: ["by the child"] });

    const tx = await store.joinTx(app);
    const error = await soon(assertRejects(() => tx.enqueueTx("mail", {}, "late"), DatabaseError));
    assert(error.retryable);
    assertInstanceOf(error.cause, Error);
    const later = await assertRejects(() => tx.enqueueTx("mail", {}, "late"), DatabaseError);
    assert(later.retryable);
    app.exec("ROLLBACK");
    assertEquals((await store.queue("mail").stats()).ready, 1);

    app.exec("BEGIN");
    await (await store.joinTx(app)).enqueueTx("mail", {}, "again");
    app.exec("COMMIT");
    assertEquals((await store.queue("mail").stats()).ready, 2);
  },
);

testFile(
  "a deferred transaction with no busy timeout waits for the lock without blocking",
  async (file) => {
    const store = await file.open({ writerTimeout: 600_000 });
    const { app, outsider } = await deferred(file);
    const tx = await store.joinTx(app);
    let hasLanded = false;
    const enqueued = tx.enqueueTx("mail", {}, "hello").then(() => hasLanded = true);
    for (let turn = 0; turn < 5; turn++) await delay(1);
    assertEquals(hasLanded, false);
    await outsider.ask("run", { sql: "COMMIT" });
    await soon(enqueued, "the enqueue");
    app.exec("COMMIT");
    assertEquals((await store.queue("mail").stats()).ready, 1);
    app.close();
  },
);

testFile(
  "a joined call that waits too long for the lock is retryable and leaves the rest",
  async (file) => {
    const store = await file.open({ writerTimeout: 30 });
    const { app, outsider } = await deferred(file);
    const tx = await store.joinTx(app);
    const error = await assertRejects(
      () => tx.enqueueTx("mail", {}, "hello"),
      DatabaseError,
      "lock",
    );
    assert(error.retryable);
    app.exec("ROLLBACK");
    await outsider.ask("run", { sql: "COMMIT" });
    assertEquals((await store.queue("mail").stats()).ready, 0);
    app.close();
  },
);

testFile(
  "joinTx() takes a connection through a link to the same file, and none in memory",
  async (file) => {
    const store = await file.open();
    Deno.symlinkSync(file.path, `${file.folder}/link.db`);
    using app = new DatabaseSync(`${file.folder}/link.db`);
    app.exec("BEGIN IMMEDIATE");
    await (await store.joinTx(app)).enqueueTx("mail", {}, "hello");
    app.exec("COMMIT");
    assertEquals((await store.queue("mail").stats()).ready, 1);
    using memory = new DatabaseSync(":memory:");
    memory.exec("BEGIN");
    await assertRejects(() => store.joinTx(memory), TypeError);
  },
);

testFile("joinTx() refuses the store's own connection and a closed one", async (file) => {
  const store = await file.open();
  const tx = await store.beginTx();
  await assertRejects(() => store.joinTx(tx.connection), TypeError, "tx");
  await tx.commit();
  const app = new DatabaseSync(file.path);
  app.close();
  await assertRejects(() => store.joinTx(app), ClosedError);
});

/** Makes every further write to alkstore's tables fail until the transaction ends. */
function sabotage(connection: SqliteConnection): void {
  for (const table of ["jobs", "events", "consumers", "locks", "wakes"]) {
    for (const write of ["INSERT", "UPDATE", "DELETE"]) {
      connection.exec(
        `CREATE TEMP TRIGGER stop_${write}_${table} BEFORE ${write} ON __alkstore_${table} ` +
          `BEGIN SELECT RAISE(ABORT, 'sabotage'); END`,
      );
    }
  }
}

async function inSavepoint(
  connection: { exec(sql: string): unknown },
  tx: JoinedTx<unknown>,
): Promise<void> {
  connection.exec("SAVEPOINT attempt");
  await tx.notifyTx("news");
  await tx.enqueueTx("mail", {}, "ghost");
  await tx.publishTx("orders", "ghost");
  connection.exec("ROLLBACK TO attempt");
  connection.exec("RELEASE attempt");
}

/** A deferred transaction of the application, while a process of its own holds the lock. */
async function deferred(file: TestFile) {
  const outsider = await file.outsider();
  await outsider.ask("run", { sql: "BEGIN IMMEDIATE" });
  const app = new DatabaseSync(file.path);
  app.exec("PRAGMA busy_timeout = 0");
  app.exec("BEGIN");
  return { app, outsider };
}
