/**
 * The SQLite engine: transactional messaging in a database file that several processes of one machine
 * share. Nothing is to be installed.
 *
 * **One SQLite library per process and file.** POSIX locks belong to the process: when a second SQLite
 * library, or `readFile`, closes the database file, the locks of the first one are gone and commits are
 * lost. Does your app open this file itself, with `node:sqlite`? Then pass `driver: "node"`.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * const path = `${await Deno.makeTempDir()}/app.db`;
 * await using store = await openSqlite(path);
 * await store.queue<{ to: string }>("mail").enqueue({ to: "a@example.org" });
 * ```
 *
 * @module
 */

import { realpathSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidNameError } from "../core/errors.ts";
import { describe } from "../core/names.ts";
import {
  checkChoice,
  checkOptions,
  checkPatience,
  checkPositiveDuration,
  orDefault,
} from "../core/options.ts";
import type { Store } from "../core/store.ts";
import { createStore } from "../core/store_handle.ts";
import { openWriter } from "./sqlite/database.ts";
import type { SqliteDriver } from "./sqlite/driver.ts";
import { loadDriver, type SqliteDriverChoice } from "./sqlite/drivers.ts";
import { SqliteEngine } from "./sqlite/engine.ts";
import { SharedFile, type WatchSettings } from "./sqlite/file.ts";

export type {
  SqliteChanges,
  SqliteDatabase,
  SqliteDriver,
  SqliteRow,
  SqliteStatement,
  SqliteValue,
} from "./sqlite/driver.ts";
export type { SqliteDriverChoice } from "./sqlite/drivers.ts";
export type {
  BetterSqlite3,
  BetterSqlite3Connection,
  BetterSqlite3Statement,
} from "./sqlite/drivers/better_sqlite3.ts";

/**
 * What the connections of all drivers have in common: enough for business reads and writes on
 * `tx.connection`. Name your library's own type to have all of it: `openSqlite<DatabaseSync>(…)`.
 *
 * @example
 * ```ts
 * import { openSqlite, type SqliteConnection } from "@alkstore/alkstore/sqlite";
 *
 * function insertOrder(connection: SqliteConnection, id: string): void {
 *   connection.prepare("INSERT INTO orders (id) VALUES (?)").run(id);
 * }
 *
 * await using store = await openSqlite(":memory:");
 * await store.transaction((tx) => {
 *   tx.connection.exec("CREATE TABLE orders (id TEXT PRIMARY KEY)");
 *   insertOrder(tx.connection, "o-1");
 * });
 * ```
 */
export interface SqliteConnection {
  /** Runs SQL without parameters. */
  exec(sql: string): unknown;
  /** Prepares a statement. */
  prepare(sql: string): {
    /** Runs the statement for its effect. */
    run(...parameters: (string | number | null)[]): unknown;
    /** The first row. */
    get(...parameters: (string | number | null)[]): unknown;
    /** All rows. */
    all(...parameters: (string | number | null)[]): unknown[];
  };
}

/**
 * Options of {@linkcode openSqlite}.
 *
 * @example
 * ```ts
 * import { openSqlite, type SqliteOptions } from "@alkstore/alkstore/sqlite";
 *
 * const options: SqliteOptions = { driver: "node", durability: "normal" };
 * await using store = await openSqlite(":memory:", options);
 * console.log((await store.status()).driver); // "node"
 * ```
 */
export interface SqliteOptions {
  /**
   * The SQLite library: `"ffi"` (`jsr:@db/sqlite`, Deno), `"node"` (`node:sqlite`, Deno and
   * Node ≥ 22.13), the constructor of `better-sqlite3`, or a driver of your own. `"auto"` is `"ffi"` in
   * Deno when it loads, `"node"` elsewhere. All stores of a process must use the same one for a file.
   * @default {"auto"}
   */
  readonly driver?: SqliteDriverChoice;
  /**
   * What an acknowledged commit survives: `"full"` a power loss (`synchronous=FULL`), `"normal"` a
   * crash of the process (`synchronous=NORMAL`), which is several times faster. @default {"full"}
   */
  readonly durability?: "full" | "normal";
  /** Whether commits of other processes are told by file events; else they are polled for. @default {true} */
  readonly watchFiles?: boolean;
  /**
   * How often to look for changes that no file event told of, in milliseconds: `max` while events work,
   * between `min` and `max` without them. `false` never looks. @default {{ min: 50, max: 10_000 }}
   */
  readonly poll?: { readonly min?: number; readonly max?: number } | false;
  /** Milliseconds a write waits for its turn, then it is a retryable error. @default {5_000} */
  readonly writerTimeout?: number;
  /** Milliseconds until an abandoned transaction is rolled back. @default {30_000} */
  readonly txTimeout?: number;
  /** Milliseconds between two background sweeps of lapsed and expired jobs. @default {60_000} */
  readonly sweepInterval?: number;
}

const KNOWN = [
  "driver",
  "durability",
  "watchFiles",
  "poll",
  "writerTimeout",
  "txTimeout",
  "sweepInterval",
];

/**
 * Opens a store on a SQLite file, creating it and its tables (`__alkstore_*`) where they are missing.
 * `":memory:"` is a private temporary file that is deleted when the store is closed.
 *
 * `path` is a path or a `file:` URL. Rejects with `DatabaseError` when the file cannot be used: a
 * missing folder, no database, a newer version of the tables, a file system without WAL; with
 * `TypeError` for bad options, or when this process has the file open with another SQLite library.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:", { durability: "normal" });
 * await store.queue("mail").enqueue("hello");
 * ```
 */
export async function openSqlite<Connection = SqliteConnection>(
  path: string | URL,
  options?: SqliteOptions,
): Promise<Store<Connection>> {
  const operation = "Cannot open SQLite";
  const file = checkPath(path, operation);
  checkOptions(options, KNOWN, operation);
  const durability = orDefault(options?.durability, "full");
  checkChoice(durability, ["full", "normal"], "durability", operation);
  const watch = checkWatch(options, operation);
  const writerTimeout = checkPositiveDuration(
    orDefault(options?.writerTimeout, 5_000),
    "writerTimeout",
    operation,
  );
  const settings = {
    txTimeout: checkPatience(orDefault(options?.txTimeout, 30_000), "txTimeout", operation),
    sweepInterval: checkPositiveDuration(
      orDefault(options?.sweepInterval, 60_000),
      "sweepInterval",
      operation,
    ),
  };
  const driver = await loadDriver(orDefault(options?.driver, "auto"));
  const place = await placeOf(file);
  try {
    SharedFile.assertSameLibrary(place.path, driver);
    const engine = await openEngine(driver, place, { durability, watch, writerTimeout });
    // The driver decides what a connection is: the caller names its type.
    return createStore(engine, settings) as Store<Connection>;
  } catch (error) {
    await place.remove?.();
    throw error;
  }
}

/** Where the file is, and how it is removed when it is temporary. */
interface Place {
  readonly path: string;
  readonly remove: (() => Promise<void>) | undefined;
}

async function placeOf(file: string): Promise<Place> {
  if (file !== ":memory:") return { path: resolve(file), remove: undefined };
  const folder = await mkdtemp(join(tmpdir(), "alkstore-"));
  return {
    path: join(folder, "memory.db"),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function openEngine(
  driver: SqliteDriver,
  place: Place,
  { durability, watch, writerTimeout }: {
    readonly durability: "full" | "normal";
    readonly watch: WatchSettings;
    readonly writerTimeout: number;
  },
): Promise<SqliteEngine> {
  const database = await openWriter(driver, place.path, durability, writerTimeout);
  const shared = SharedFile.acquire(realpathSync(place.path), driver);
  try {
    return new SqliteEngine({
      driver,
      database,
      file: shared,
      watch,
      writerTimeout,
      isFull: durability === "full",
      remove: place.remove,
    });
  } catch (error) {
    await shared.release(() => {});
    database.close();
    throw error;
  }
}

function checkPath(path: unknown, operation: string): string {
  if (path instanceof URL) {
    if (path.protocol !== "file:") {
      throw new TypeError(`${operation}: a file: URL is needed, got ${JSON.stringify(path.href)}`);
    }
    return fileURLToPath(path);
  }
  if (typeof path !== "string") {
    throw new TypeError(`${operation}: the path must be a string or a URL, got ${describe(path)}`);
  }
  if (path === "" || path.includes("\0")) {
    throw new InvalidNameError(operation, path, "a path must not be empty or hold U+0000");
  }
  return path;
}

function checkWatch(options: SqliteOptions | undefined, operation: string): WatchSettings {
  const watchFiles = orDefault(options?.watchFiles, true);
  checkChoice(watchFiles, [true, false], "watchFiles", operation);
  if (options?.poll === false) return { watchFiles, poll: false };
  checkOptions(options?.poll, ["min", "max"], operation);
  const min = checkPositiveDuration(orDefault(options?.poll?.min, 50), "poll.min", operation);
  const max = checkPositiveDuration(orDefault(options?.poll?.max, 10_000), "poll.max", operation);
  if (min > max) {
    throw new RangeError(`${operation}: poll.min (${min}) must not be above poll.max (${max})`);
  }
  return { watchFiles, poll: { min, max } };
}
