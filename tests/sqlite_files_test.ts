/** The SQLite file itself: locks, replacement, growth, space, and files that cannot be used. */

import { DatabaseSync } from "node:sqlite";
import {
  assert,
  assertEquals,
  assertFalse,
  assertInstanceOf,
  assertLess,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { openSqlite, type SqliteConnection } from "../engines/sqlite.ts";
import { loadDriver } from "../engines/sqlite/drivers.ts";
import { ClosedError, DatabaseError, type Store } from "../mod.ts";
import { rejectionOf } from "./contract/tx_calls.ts";
import { soon, until } from "./contract/wait.ts";
import { listOrders, makeOrders, type TestFile, testFile } from "./sqlite/test_file.ts";

/** Where the system lists locks, and has files that are no files. */
const hasProc = Deno.build.os === "linux";

testFile("the locks of other connections outlive a store that watches and closes", async (file) => {
  // In a process of its own, which dies when SQLite loses the memory it shares.
  const [child, outsider] = [await file.storekeeper(), await file.outsider()];
  await child.ask("listen", { channel: "news" });
  await child.ask("notify", { channel: "news" });
  await child.ask("heard");
  await child.ask("lock", { path: file.path });
  // Everything that makes file events: others open, fail to write, read and close.
  for (let n = 0; n < 5; n++) {
    assertEquals(await outsider.ask("tryToWrite"), "database is locked");
    const visitor = await file.outsider();
    await visitor.ask("run", { sql: "SELECT count(*) FROM __alkstore_jobs" });
    await visitor.ask("close");
  }
  const held = await child.ask<string[]>("locks", { path: file.path });
  assert(held.length > 0 || !hasProc);
  await child.ask("close");
  assertEquals(await child.ask("locks", { path: file.path }), held);
  assertEquals(await outsider.ask("tryToWrite"), "database is locked");
  await child.ask("unlock");
  assertEquals(await outsider.ask("tryToWrite"), "free");
});

testFile(
  "a process that comes and goes does not take the log from a store that watches",
  async (file) => {
    const keeper = await file.storekeeper();
    await keeper.ask("listen", { channel: "news" });
    for (let n = 0; n < 5; n++) {
      await keeper.ask("enqueue", { queue: "mail", payloads: [`keeper ${n}`] });
      const visitor = await file.storekeeper();
      await visitor.ask("enqueue", { queue: "mail", payloads: [`visitor ${n}`] });
      await visitor.ask("close");
    }
    await keeper.ask("enqueue", { queue: "mail", payloads: ["keeper at last"] });
    const outsider = await file.outsider();
    const sql = "SELECT count(*) AS jobs FROM __alkstore_jobs";
    assertEquals(await outsider.ask("run", { sql }), [{ jobs: 11 }]);
    await keeper.ask("close");
    assertEquals(await outsider.ask("run", { sql }), [{ jobs: 11 }]);
  },
);

testFile("a second SQLite library on a file that is open is a TypeError", async (file) => {
  await file.open();
  const other = { ...await loadDriver("node"), name: "another library" };
  await assertRejects(() => file.open({ driver: other }), TypeError, "another library");
  await (await file.open()).close();
});

for (const loss of ["replaced", "deleted"] as const) {
  testFile(`a ${loss} file ends receivers and workers`, async (file) => {
    const store = await file.open({ poll: { min: 10, max: 20 } });
    const errors: Error[] = [];
    store.onEvent((event) => event.type === "error" && errors.push(event.error));
    const wakes = await store.listen("news");
    const events = await store.stream("orders").subscribe("billing");
    const worker = store.queue("mail").work(() => {});
    const waiting = [wakes.recv(), events.recv()];
    const loop = rejectionOf(collect(wakes));
    const stopped = rejectionOf(worker.done);
    lose(file, loss);

    assertEquals(await soon<unknown[]>(Promise.all(waiting)), [undefined, undefined]);
    for (const ending of [loop, stopped]) {
      const error = await soon(ending, "the end of the loop");
      assertInstanceOf(error, ClosedError);
      assertInstanceOf(error.cause, Error);
    }
    assertThrows(() => wakes.tryRecv(), ClosedError);
    await assertRejects(() => events.tryRecv(), ClosedError);
    assertInstanceOf((await assertRejects(() => store.listen("news"), ClosedError)).cause, Error);
    assert(errors.some(({ message }) => message.includes(loss)));
    await soon(store.close(), "the close");
  });

  testFile(`a ${loss} file takes no write that would be lost`, async (file) => {
    const store = await file.open({ poll: { min: 10, max: 20 } });
    const wakes = await store.listen("news");
    const tx = await store.beginTx();
    await tx.enqueueTx("mail", {}, "ghost");
    lose(file, loss);
    await soon(wakes.recv(), "the end of the receiver");

    const writes = [
      () => tx.commit(),
      () => store.queue("mail").enqueue("lost"),
      () => store.stream("orders").publish("lost"),
      () => store.beginTx(),
    ];
    for (const write of writes) {
      const error = await assertRejects(() => soon<unknown>(write()), DatabaseError);
      assertFalse(error.retryable);
    }
    assertEquals((await store.status()).healthy, false);
    await soon(store.close(), "the close");
    if (loss === "replaced") assertEquals(Deno.readTextFileSync(file.path), "another file");
  });
}

testFile("the -wal file stays bounded while subscribers are paused", async (file) => {
  const store = await file.open({ durability: "normal" });
  const orders = store.stream<string>("orders");
  await orders.publish("first");
  for (const consumer of ["a", "b", "c"]) {
    const paused = (await orders.subscribe(consumer))[Symbol.asyncIterator]();
    assertEquals((await soon(paused.next(), "the first event")).value.payload, "first");
  }
  const events = Array.from({ length: 10 }, () => ({ payload: "x".repeat(100_000) }));
  for (let n = 0; n < 60; n++) {
    await orders.publishMany(events);
    assertLess(await walBytes(store), 16 * 1_024 * 1_024);
  }
  // Nobody holds a snapshot: everything can be moved into the file, and the log be emptied.
  const outsider = await file.outsider();
  const [outcome] = await outsider.ask<{ busy: number }[]>("run", {
    sql: "PRAGMA wal_checkpoint(TRUNCATE)",
  });
  assertEquals(outcome?.busy, 0);
  assertEquals(await walBytes(store), 0);
});

testFile("a large -wal file is cut back when nobody writes", async (file) => {
  const store = await file.open({ durability: "normal", sweepInterval: 20 });
  await store.queue("mail").enqueueMany(Array.from({ length: 100 }, () => "x".repeat(100_000)));
  await until(async () => await walBytes(store) < 4 * 1_024 * 1_024, "the truncation");
});

testFile("the last store.close() leaves nothing but the database file", async (file) => {
  const stores = [await file.open(), await file.open()];
  await stores[0]!.listen("news");
  await stores[1]!.queue("mail").enqueue("hello");
  for (const store of stores) await store.close();
  assertEquals([...Deno.readDirSync(file.folder)].map(({ name }) => name), ["app.db"]);
});

testFile('":memory:" is a file of its own that is deleted at close', async () => {
  const [store, other] = [
    await openSqlite(":memory:", { driver: "node" }),
    await openSqlite(":memory:", { driver: "node" }),
  ];
  const id = await store.queue("mail").enqueue("hello");
  assertEquals(await other.queue("mail").getJob(id), undefined);
  const path = String((await store.status()).details["path"]);
  assert(Deno.statSync(path).isFile);
  await store.close();
  await other.close();
  assertThrows(() => Deno.statSync(path), Deno.errors.NotFound);
});

testFile("a full database refuses what does not fit, and loses nothing", async (file) => {
  const store = await file.open();
  const queue = store.queue<string>("mail");
  const kept = await queue.enqueue("kept");
  await limitSpace(store, 20);
  const large = "x".repeat(1_000_000);
  const [small, refused, another] = await Promise.allSettled([
    queue.enqueue("small"),
    queue.enqueue(large),
    queue.enqueue("small too"),
  ]);
  assertEquals([small.status, another.status], ["fulfilled", "fulfilled"]);
  assertInstanceOf(refused.status === "rejected" && refused.reason, DatabaseError);
  assertEquals((await queue.stats()).ready, 3);
  const error = await assertRejects(() => queue.enqueue(large), DatabaseError, "full");
  assertEquals([error.retryable, error.outcome], [false, "not-applied"]);
  assertInstanceOf(error.cause, Error);
  assertEquals((await queue.getJob(kept))?.payload, "kept");

  await limitSpace(store, 10_000);
  await queue.enqueue(large);
  assertEquals((await queue.claimBatch("w-1", 9)).length, 4);
});

testFile("a full database dooms the transaction that did not fit", async (file) => {
  const store = await file.open();
  await makeOrders(store);
  await limitSpace(store, 20);
  const tx = await store.beginTx();
  tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run("o-1");
  const large = "x".repeat(1_000_000);
  const first = await assertRejects(() => tx.enqueueTx("mail", {}, large), DatabaseError, "full");
  for (const later of [() => tx.enqueueTx("mail", {}, "small"), () => tx.commit()]) {
    assertEquals((await assertRejects(later, DatabaseError)).cause, first);
  }
  assertEquals(await listOrders(store), []);
  await limitSpace(store, 10_000);
  await store.transaction(async (tx) => {
    tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run("o-1");
    await tx.enqueueTx("mail", {}, large);
  });
  assertEquals(await listOrders(store), ["o-1"]);
});

testFile("a business write that fills the database dooms the transaction", async (file) => {
  const store = await file.open();
  await makeOrders(store);
  await limitSpace(store, 20);
  const tx = await store.beginTx();
  await tx.enqueueTx("mail", {}, "ghost");
  const insert = tx.connection.prepare("INSERT INTO orders (id) VALUES (?)");
  assertThrows(() => insert.run("x".repeat(1_000_000)));
  await assertRejects(() => tx.enqueueTx("mail", {}, "ghost"), DatabaseError);
  await assertRejects(() => tx.commit(), DatabaseError);
  assertEquals(await listOrders(store), []);
  assertEquals((await store.queue("mail").stats()).ready, 0);
});

testFile("a process that writes for too long makes calls retryable, not wrong", async (file) => {
  const store = await file.open({ writerTimeout: 50 });
  const id = await store.queue("mail").enqueue("hello");
  const outsider = await file.outsider();
  await outsider.ask("run", { sql: "BEGIN IMMEDIATE" });
  const calls = [
    () => store.queue("mail").enqueue("late"),
    () => store.beginTx(),
    () => store.transaction(() => {}),
    () => store.queue("mail").claimOne("w-1"),
  ];
  for (const call of calls) {
    const error = await assertRejects(
      () => soon<unknown>(call()),
      DatabaseError,
      "another process",
    );
    assert(error.retryable);
  }
  assertEquals((await store.queue("mail").getJob(id))?.state, "ready");
  await outsider.ask("run", { sql: "COMMIT" });
  assertEquals((await store.queue("mail").claimOne("w-1"))?.id, id);
});

testFile("calls wait for a process that writes, and then all of them land", async (file) => {
  const store = await file.open({ writerTimeout: 600_000 });
  const outsider = await file.outsider();
  for (let round = 0; round < 3; round++) {
    await outsider.ask("run", { sql: "BEGIN IMMEDIATE" });
    const calls = [
      ...Array.from({ length: 10 }, (_, n) => store.queue("mail").enqueue(n)),
      store.transaction((tx) => tx.enqueueTx("mail", {}, "tx")),
      store.stream("orders").publish(round),
    ];
    // Reads do not wait.
    assertEquals((await store.queue("mail").stats()).ready, 11 * round);
    await outsider.ask("run", { sql: "COMMIT" });
    await soon(Promise.all<unknown>(calls), "the calls");
  }
  assertEquals((await store.queue("mail").stats()).ready, 33);
});

testFile(
  "a call that waits for another store of the process hears who holds it up",
  async (file) => {
    const [store, other] = [await file.open({ writerTimeout: 30 }), await file.open()];
    const tx = await other.beginTx();
    const error = await assertRejects(() => store.queue("mail").enqueue("late"), DatabaseError);
    assert(error.retryable);
    assertStringIncludes(error.message, "sqlite_files_test.ts");
    await tx.commit();
    await store.queue("mail").enqueue("in time");
  },
);

testFile("openSqlite() waits for a process that writes, and gives up in time", async (file) => {
  new DatabaseSync(file.path).close();
  const outsider = await file.outsider();
  await outsider.ask("run", { sql: "BEGIN EXCLUSIVE" });
  const error = await assertRejects(() => file.open({ writerTimeout: 50 }), DatabaseError, "lock");
  assert(error.retryable);
  const [store] = await Promise.all([
    soon(file.open({ writerTimeout: 600_000 }), "the open"),
    outsider.ask("run", { sql: "COMMIT" }),
  ]);
  await store.queue("mail").enqueue("hello");
});

testFile("tables of a newer alkstore are refused and left alone", async (file) => {
  await (await file.open()).close();
  const outsider = await file.outsider();
  await outsider.ask("run", {
    sql: "UPDATE __alkstore_meta SET value = 999 WHERE key = 'schema_version'",
  });
  const error = await assertRejects(() => file.open(), DatabaseError, "999");
  assertFalse(error.retryable);
  const rows = await outsider.ask("run", {
    sql: "SELECT value FROM __alkstore_meta WHERE key = 'schema_version'",
  });
  assertEquals(rows, [{ value: 999 }]);
});

testFile("openSqlite() refuses what is no place for a database", async (file) => {
  const text = "not a database, but long enough to have a header\n".repeat(100);
  Deno.writeTextFileSync(`${file.folder}/notes.txt`, text);
  const places: [string, string][] = [
    [`${file.folder}/missing/app.db`, "missing"],
    [file.folder, "folder"],
    [`${file.folder}/notes.txt`, "not a"],
    ["/dev/null", "null"],
    ...(hasProc ? [["/proc/version", "version"] as [string, string]] : []),
  ];
  for (const [path, fact] of places) {
    const open = () => openSqlite(path, { driver: "node", writerTimeout: 50 });
    const error = await assertRejects(open, DatabaseError, fact);
    assertStringIncludes(error.message, path);
    assertFalse(error.retryable);
  }
  assertEquals(Deno.readTextFileSync(`${file.folder}/notes.txt`), text);
});

testFile("a damaged file is a DatabaseError", async (file) => {
  const store = await file.open();
  await store.queue("mail").enqueueMany(Array.from({ length: 100 }, () => "x".repeat(1_000)));
  await store.close();
  Deno.truncateSync(file.path, 3 * 4_096);
  const error = await assertRejects(async () => {
    await (await file.open()).queue("mail").claimBatch("w-1", 100);
  }, DatabaseError);
  assertInstanceOf(error.cause, Error);
  assertFalse(error.retryable);
});

for (
  const [what, restrict] of [
    ["file", (file: TestFile) => Deno.chmodSync(file.path, 0o444)],
    ["folder", (file: TestFile) => Deno.chmodSync(file.folder, 0o555)],
  ] as const
) {
  testFile(`a read-only ${what} is a DatabaseError that says so`, async (file) => {
    await (await file.open()).close();
    Deno.chmodSync(file.folder, 0o777);
    Deno.chmodSync(file.path, 0o666);
    restrict(file);
    const [child] = await file.newcomers(1);
    const outcome = await child!.ask<{ isDatabaseError: boolean; message: string }>(
      "useUnprivileged",
      { path: file.path },
    );
    assertEquals(outcome?.isDatabaseError, true, outcome?.message);
    assert(/read-?only|cannot be opened/.test(outcome.message), outcome.message);
    Deno.chmodSync(file.folder, 0o777);
  });
}

/** Puts another file in its place, or none. */
function lose(file: TestFile, loss: "replaced" | "deleted"): void {
  if (loss === "deleted") return Deno.removeSync(file.path);
  Deno.writeTextFileSync(`${file.folder}/other`, "another file");
  Deno.renameSync(`${file.folder}/other`, file.path);
}

async function collect(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

async function walBytes(store: Store<SqliteConnection>): Promise<number> {
  return Number((await store.status()).details["walBytes"]);
}

/** Lets the database grow by so many pages and no further: SQLite then says that the disk is full. */
async function limitSpace(store: Store<SqliteConnection>, pages: number): Promise<void> {
  await store.transaction((tx) => {
    const row = tx.connection.prepare("PRAGMA page_count").get() as { page_count: number };
    tx.connection.exec(`PRAGMA max_page_count = ${row.page_count + pages}`);
  });
}
