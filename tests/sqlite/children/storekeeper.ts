/** A process with a store of its own on the file. */

import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { openSqlite, type SqliteConnection } from "../../../engines/sqlite.ts";
import {
  DatabaseError,
  type Job,
  type Store,
  type WakeReceiver,
  type WorkerHandle,
} from "../../../mod.ts";
import { type Details, obey, say } from "./orders.ts";

let store: Store<SqliteConnection>;
let receiver: WakeReceiver | undefined;
let application: DatabaseSync | undefined;
let worker: WorkerHandle | undefined;
const jobs: Job[] = [];
const acked: number[] = [];
const handled: number[] = [];

await obey({
  open: async ({ path, options }: Details) => {
    store = await openSqlite(path, { driver: "node", poll: false, ...options });
    store.onEvent((event) => event.type === "acked" && acked.push(...event.ids));
    return (await store.status()).schemaVersion;
  },

  /** Opens and writes as somebody without rights, and answers with the error. */
  useUnprivileged: async ({ path }: Details) => {
    // Everything has to be loaded before.
    await (await openSqlite(":memory:", { driver: "node" })).close();
    if (process.getuid?.() === 0) {
      process.setgid?.(65534);
      process.setuid?.(65534);
    }
    try {
      const other = await openSqlite(path, { driver: "node", writerTimeout: 200 });
      await other.queue("mail").enqueue("hello").finally(() => other.close());
      return undefined;
    } catch (error) {
      return { isDatabaseError: error instanceof DatabaseError, message: String(error) };
    }
  },

  listen: async ({ channel }: Details) => {
    receiver = await store.listen(channel);
  },
  heard: () => receiver?.recv(),

  /** Takes the lock with a connection of the application's own, of the same process. */
  lock: ({ path }: Details) => {
    application = new DatabaseSync(path);
    application.exec("BEGIN IMMEDIATE");
  },
  unlock: () => {
    application?.exec("ROLLBACK");
    application?.close();
  },
  /** The write locks this process has on the file and its index, as the system lists them. */
  locks: ({ path }: Details) => {
    if (!existsSync("/proc/locks")) return [];
    const inodes = [path, `${path}-shm`].map((name) => `:${statSync(name).ino}`);
    return readFileSync("/proc/locks", "utf8").split("\n")
      .map((line) => line.trim().split(/\s+/).slice(1).join(" "))
      .filter((lock) => lock.includes(` WRITE ${process.pid} `))
      .filter((lock) => inodes.some((inode) => lock.includes(inode)));
  },

  notify: ({ channel }: Details) => store.notify(channel),
  publish: ({ stream, payload }: Details) => store.stream(stream).publish(payload),
  enqueue: ({ queue, payloads, opts, settings }: Details) =>
    store.queue(queue, settings).enqueueMany(payloads, opts),
  cancel: ({ queue, id }: Details) => store.queue(queue).cancel(id),
  requeue: ({ queue, id }: Details) => store.queue(queue).requeue(id),

  claim: async ({ queue, worker: name, limit }: Details) => {
    const claimed = await store.queue(queue).claimBatch(name, limit);
    jobs.push(...claimed);
    return claimed.map((job) => ({ id: job.id, attempt: job.attempt }));
  },
  release: async () => {
    for (const job of jobs.splice(0)) await job.release();
  },

  /** Commits orders, each with its message, in transactions of their own. */
  place: async ({ orders }: Details) => {
    for (const id of orders) await place(id);
  },
  /** The same without end; says each order once it is committed. */
  placeForEver: async () => {
    for (let n = 0;; n++) {
      await place(`o-${n}`);
      say(`o-${n}`);
    }
  },
  /** Begins an order and leaves it at that. */
  placeHalf: async ({ id }: Details) => {
    const tx = await store.beginTx();
    tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run(id);
    await tx.enqueueTx("mail", {}, id);
    await tx.publishTx("orders", id);
    await tx.notifyTx("orders");
  },

  work: ({ queue, concurrency, mark, name }: Details) => {
    worker = store.queue(queue).work((job) => {
      handled.push(job.id);
      // A mark that a process can see whose event loop stands still.
      if (mark !== undefined && !existsSync(mark)) writeFileSync(mark, "");
    }, { concurrency, ...(name !== undefined && { worker: name }) });
  },
  project: ({ stream, consumer }: Details) => {
    worker = store.stream<string>(stream).process(consumer, (event, tx) => {
      tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run(event.payload);
    });
  },
  stop: async () => {
    await worker?.stop();
    return { handled, acked };
  },
  close: () => store.close(),
});

async function place(id: string): Promise<void> {
  await store.transaction(async (tx) => {
    tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run(id);
    await tx.enqueueTx("mail", {}, id);
    await tx.publishTx("orders", id);
  });
}
