import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { DatabaseError } from "../../core/errors.ts";
import { Backoffs, sleep } from "../../core/timers.ts";
import type { SqliteDatabase, SqliteDriver } from "./driver.ts";
import { asDatabaseError, isBusy } from "./errors.ts";
import { META, MIGRATIONS, SCHEMA_VERSION } from "./schema.ts";

/** How a commit survives. */
export type Durability = "full" | "normal";

/** The -wal file is cut back to this size after a checkpoint, in bytes: 16 MiB. */
const JOURNAL_SIZE_LIMIT = 16 * 1_024 * 1_024;

const OPERATION = "Cannot open";

/** Opens the connection that writes, in WAL mode and with the tables in place. */
export async function openWriter(
  driver: SqliteDriver,
  path: string,
  durability: Durability,
  patience: number,
): Promise<SqliteDatabase> {
  const operation = `${OPERATION} ${JSON.stringify(path)}`;
  assertOpenable(path, operation);
  const database = openConnection(driver, path);
  try {
    // Even a first SELECT takes a lock on the file.
    await patiently(driver, operation, patience, () => assertLibrary(database, operation));
    await patiently(
      driver,
      operation,
      patience,
      () => prepareFile(database, durability, operation),
    );
    await patiently(driver, operation, patience, () => migrate(database, operation));
    return database;
  } catch (error) {
    database.close();
    throw asDatabaseError(driver, operation, error);
  }
}

/** Opens a further connection, for reads. */
export function openConnection(driver: SqliteDriver, path: string): SqliteDatabase {
  const operation = `${OPERATION} ${JSON.stringify(path)}`;
  let database: SqliteDatabase;
  try {
    database = driver.open(path);
  } catch (error) {
    throw asDatabaseError(driver, operation, error);
  }
  try {
    // Never wait inside a call: that would freeze the thread. Before any other statement.
    database.prepare("PRAGMA busy_timeout = 0").all();
    return database;
  } catch (error) {
    database.close();
    throw asDatabaseError(driver, operation, error);
  }
}

/** SQLite itself would only say that it cannot open the file. */
function assertOpenable(path: string, operation: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) {
    throw new DatabaseError(`${operation}: the folder ${JSON.stringify(folder)} does not exist`);
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new DatabaseError(`${operation}: it is a folder`);
  }
}

/** The JSON operators need 3.38; one runtime once read integers above 2^31 wrong. */
function assertLibrary(database: SqliteDatabase, operation: string): void {
  const { version } = database.prepare<{ version: string }>(
    "SELECT sqlite_version() AS version",
  ).get()!;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < 3 || (major === 3 && minor < 38)) {
    throw new DatabaseError(`${operation}: SQLite 3.38 or newer is needed, this is ${version}`);
  }
  const { product } = database.prepare<{ product: number }>(
    "SELECT 1740003367 * 1000 AS product",
  ).get()!;
  if (product !== 1_740_003_367_000) {
    throw new DatabaseError(
      `${operation}: the driver reads 64-bit integers wrong (${product}), another version is needed`,
    );
  }
}

function prepareFile(database: SqliteDatabase, durability: Durability, operation: string): void {
  const mode = () =>
    database.prepare<{ journal_mode: string }>("PRAGMA journal_mode").get()?.journal_mode;
  if (mode() !== "wal") {
    database.prepare("PRAGMA journal_mode = WAL").all();
    if (mode() !== "wal") {
      throw new DatabaseError(
        `${operation}: the file cannot be in WAL mode (it is in "${mode()}"): put it on a local disk`,
      );
    }
  }
  database.prepare(`PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`).all();
  if (process.platform === "darwin") database.prepare("PRAGMA fullfsync = ON").all();
  database.prepare(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT}`).all();
  // Two of the three libraries do that by themselves: the app's writes must not depend on which.
  database.prepare("PRAGMA foreign_keys = ON").all();
}

/** Brings the tables to this version, under the write lock: processes that open together agree. */
function migrate(database: SqliteDatabase, operation: string): void {
  if (versionOf(database) === SCHEMA_VERSION) return;
  database.prepare("BEGIN IMMEDIATE").run();
  try {
    const version = versionOf(database);
    if (version > SCHEMA_VERSION) {
      throw new DatabaseError(
        `${operation}: its alkstore tables have version ${version}, this library knows up to ` +
          `${SCHEMA_VERSION}: update alkstore`,
      );
    }
    if (version === 0) database.exec(META);
    for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
    database.prepare(
      "INSERT OR REPLACE INTO __alkstore_meta (key, value) VALUES ('schema_version', ?)",
    ).run(SCHEMA_VERSION);
    database.prepare("COMMIT").run();
  } catch (error) {
    if (database.inTransaction) database.prepare("ROLLBACK").run();
    throw error;
  }
}

function versionOf(database: SqliteDatabase): number {
  const hasMeta = database.prepare(
    "SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = '__alkstore_meta'",
  ).get();
  if (hasMeta === undefined) return 0;
  return database.prepare<{ value: number }>(
    "SELECT value FROM __alkstore_meta WHERE key = 'schema_version'",
  ).get()?.value ?? 0;
}

/** Runs `step`, again and again while the file is busy, without blocking the thread. */
async function patiently(
  driver: SqliteDriver,
  operation: string,
  patience: number,
  step: () => void,
): Promise<void> {
  const deadline = performance.now() + patience;
  const backoff = new Backoffs(1, 20);
  while (true) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(driver, error) || performance.now() >= deadline) {
        throw asDatabaseError(driver, operation, error);
      }
      await sleep(backoff.next());
    }
  }
}
