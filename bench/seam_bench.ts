/**
 * What the transaction seam costs beside the raw driver: a business insert and a job in one commit.
 * Compare within a group; the machine's own speed is in both.
 */

import { DatabaseSync } from "node:sqlite";
import { openSqlite } from "../engines/sqlite.ts";
import { ENQUEUE } from "../engines/sqlite/sql/jobs.ts";

const TABLE = "CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT NOT NULL)";
const INSERT = "INSERT INTO orders (note) VALUES (?)";
const payload = { id: "o-1", text: "x".repeat(100) };

for (const durability of ["normal", "full"] as const) {
  const folder = await Deno.makeTempDir({ prefix: "alkstore-bench-" });
  globalThis.addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));
  const path = `${folder}/app.db`;
  const store = await openSqlite<DatabaseSync>(path, { driver: "node", durability });
  await store.transaction((tx) => tx.connection.exec(TABLE));
  const queue = store.queue<typeof payload>("mail");

  const raw = new DatabaseSync(path);
  raw.exec(`PRAGMA synchronous = ${durability}`);
  const begin = raw.prepare("BEGIN IMMEDIATE");
  const commit = raw.prepare("COMMIT");
  const insert = raw.prepare(INSERT);
  const enqueue = raw.prepare(ENQUEUE);
  const backoff = "exponential 5000 3600000 0.1";

  /** The same rows as the store's, by the driver alone. */
  const rawEnqueue = (): void => {
    const now = Date.now();
    const text = JSON.stringify(payload);
    enqueue.run("mail", "ready", 0, now, now, null, 5, 60_000, backoff, text);
  };

  const group = `a business insert and a job, ${durability}`;

  Deno.bench("raw transaction", { group, baseline: true }, () => {
    begin.run();
    insert.run(payload.text);
    rawEnqueue();
    commit.run();
  });

  Deno.bench("beginTx, enqueueTx, commit", { group }, async () => {
    const tx = await store.beginTx();
    tx.connection.prepare(INSERT).run(payload.text);
    await tx.enqueueTx(queue, {}, payload);
    await tx.commit();
  });

  Deno.bench("transaction()", { group }, async () => {
    await store.transaction(async (tx) => {
      tx.connection.prepare(INSERT).run(payload.text);
      await tx.enqueueTx(queue, {}, payload);
    });
  });

  const alone = `a job alone, ${durability}`;

  Deno.bench("raw insert", { group: alone, baseline: true }, () => {
    begin.run();
    rawEnqueue();
    commit.run();
  });

  Deno.bench("enqueue()", { group: alone }, async () => {
    await queue.enqueue(payload);
  });

  Deno.bench("64 enqueue() at once", { group: alone }, async () => {
    await Promise.all(Array.from({ length: 64 }, () => queue.enqueue(payload)));
  });
}
