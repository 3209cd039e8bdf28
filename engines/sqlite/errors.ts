import { AlkstoreError, DatabaseError } from "../../core/errors.ts";
import type { SqliteDriver } from "./driver.ts";

/** Primary result codes the engine acts on. */
export const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

/** Extended result code: another connection has written since this transaction first read. */
export const BUSY_SNAPSHOT = 517;

/** What each result code means to the caller. */
const FACTS: Readonly<Record<number, string>> = {
  [BUSY]: "the database is locked by another connection",
  [LOCKED]: "a table is locked by another statement of this connection",
  [READONLY]: "the database is read-only",
  [IOERR]: "the disk failed to read or write",
  [CORRUPT]: "the database file is corrupt",
  [FULL]: "the disk or the database is full",
  [CANTOPEN]: "the file cannot be opened",
  [NOTADB]: "the file is not a SQLite database",
};

/** The primary code of an error of this driver: 5 for every kind of busy. */
export function primaryCode(driver: SqliteDriver, error: unknown): number | undefined {
  const code = driver.resultCode(error);
  return code === undefined ? undefined : code & 0xff;
}

/** Whether the database is busy in a way that waiting can end. */
export function isBusy(driver: SqliteDriver, error: unknown): boolean {
  return primaryCode(driver, error) === BUSY && driver.resultCode(error) !== BUSY_SNAPSHOT;
}

/** Any error as one of ours, with the driver's in `cause`. Nothing was applied. */
export function asDatabaseError(driver: SqliteDriver, operation: string, error: unknown): Error {
  if (error instanceof AlkstoreError) return error;
  const code = primaryCode(driver, error);
  if (driver.resultCode(error) === BUSY_SNAPSHOT) {
    return new DatabaseError(
      `${operation}: another connection has written since this transaction began to read; ` +
        `roll back and run it again, or begin it with BEGIN IMMEDIATE`,
      { cause: error, retryable: true },
    );
  }
  const detail = error instanceof Error ? error.message : String(error);
  const fact = code === undefined ? undefined : FACTS[code];
  return new DatabaseError(
    `${operation}: ${fact === undefined ? detail : `${fact} (${detail})`}`,
    { cause: error, retryable: code === BUSY || code === LOCKED },
  );
}

/**
 * A failed COMMIT. The disk may have taken it before it failed; with every other error SQLite has
 * kept or rolled back the transaction, and nothing was applied.
 */
export function asCommitError(driver: SqliteDriver, operation: string, error: unknown): Error {
  if (primaryCode(driver, error) !== IOERR) return asDatabaseError(driver, operation, error);
  return new DatabaseError(
    `${operation}: ${FACTS[IOERR]} during the commit, which may or may not have been applied`,
    { cause: error, outcome: "unknown" },
  );
}
