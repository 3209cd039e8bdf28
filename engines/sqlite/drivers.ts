/** Chooses the SQLite library an engine works with. */
import { DatabaseError } from "../../core/errors.ts";
import type { SqliteDriver } from "./driver.ts";
import { type BetterSqlite3, betterSqlite3 } from "./drivers/better_sqlite3.ts";
import { ffiIsGranted, loadFfi } from "./drivers/ffi.ts";

/**
 * Which SQLite library opens the file. All of one process must use the same one for the same file:
 * when another library closes it, the locks of the first are gone and commits are lost.
 *
 * - `"auto"`: in Deno `"ffi"` where it may load and does so within 5 s, otherwise `"node"`. Decided
 *   once per process. It never prompts: FFI, environment, network, read and write access must be
 *   granted as a whole (`-A`), or FFI and access to a `DENO_SQLITE_PATH` that is set. A load that
 *   hangs is given up, but Deno stays alive until it ends: behind a firewall say `"node"`.
 * - `"ffi"`: `jsr:@db/sqlite`, in Deno. It downloads its library from GitHub at first use, unless
 *   `DENO_SQLITE_PATH` names one.
 * - `"node"`: `node:sqlite`, in Deno and Node 22.13 or newer.
 * - the constructor that `better-sqlite3` exports.
 * - a driver of your own.
 *
 * @example
 * ```ts
 * import { openSqlite, type SqliteDriverChoice } from "@alkstore/alkstore/sqlite";
 *
 * const driver: SqliteDriverChoice = "node";
 * await using store = await openSqlite(":memory:", { driver });
 * console.log((await store.status()).driver);
 * ```
 */
export type SqliteDriverChoice = "auto" | "ffi" | "node" | BetterSqlite3 | SqliteDriver;

/** Milliseconds `"auto"` waits for `@db/sqlite`: a download of 1 MB, or a network that drops all. */
const FFI_PATIENCE = 5_000;

/** What a driver needs, for the one who named it and cannot have it. */
const NEEDS = {
  ffi: "it needs Deno with --allow-ffi and, unless DENO_SQLITE_PATH names a SQLite library, one " +
    'download from jsr.io and GitHub; driver "node" needs neither',
  node:
    "it needs Deno or Node 22.13 or newer; elsewhere pass the constructor that better-sqlite3 " +
    "exports as the driver",
};

let auto: Promise<SqliteDriver> | undefined;

/**
 * Loads the driver of `choice`. A named driver that does not load is a `DatabaseError`, anything
 * that is no choice a `TypeError`.
 */
export async function loadDriver(choice: SqliteDriverChoice): Promise<SqliteDriver> {
  switch (choice) {
    case "auto":
      return await (auto ??= loadAuto());
    case "ffi":
      return await named(choice, loadFfi);
    case "node":
      return await named(choice, loadNode);
  }
  if (isDriver(choice)) return choice;
  if (isBetterSqlite3(choice)) return betterSqlite3(choice);
  throw new TypeError(
    'Cannot load the SQLite driver: it must be "auto", "ffi", "node", the constructor of ' +
      "better-sqlite3 or a SqliteDriver",
  );
}

async function loadAuto(): Promise<SqliteDriver> {
  return await ffiIsGranted() && await patiently(loadWorkingFfi()) || await loadDriver("node");
}

/** What `loading` gives, or nothing when it fails or is late. */
function patiently<T>(loading: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve) => {
    // The import cannot be called off: it goes on and its result is not used in this process.
    const timer = setTimeout(() => resolve(undefined), FFI_PATIENCE);
    loading.catch(() => undefined).then((result) => {
      clearTimeout(timer);
      resolve(result);
    });
  });
}

async function loadWorkingFfi(): Promise<SqliteDriver> {
  const driver = await loadFfi();
  driver.open(":memory:").close();
  return driver;
}

async function loadNode(): Promise<SqliteDriver> {
  return (await import("./drivers/node.ts")).nodeDriver;
}

async function named(name: keyof typeof NEEDS, load: () => Promise<SqliteDriver>) {
  try {
    return await load();
  } catch (cause) {
    throw new DatabaseError(`Cannot load the SQLite driver "${name}": ${NEEDS[name]}`, { cause });
  }
}

function isDriver(choice: unknown): choice is SqliteDriver {
  return typeof choice === "object" && choice !== null &&
    ["open", "owns", "wrap", "resultCode"].every((method) =>
      typeof Reflect.get(choice, method) === "function"
    );
}

/** Tells it from `DatabaseSync` and from the `Database` of other libraries. */
function isBetterSqlite3(choice: unknown): choice is BetterSqlite3 {
  return typeof choice === "function" && typeof choice.prototype?.pragma === "function";
}
