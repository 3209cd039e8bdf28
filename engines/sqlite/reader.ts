import { ClosedError } from "../../core/errors.ts";
import { Backoffs } from "../../core/timers.ts";
import type { SqliteDatabase, SqliteDriver } from "./driver.ts";
import { asDatabaseError, isBusy } from "./errors.ts";
import { pause } from "./pause.ts";
import { Statements } from "./statements.ts";
import type { Work } from "./work.ts";

/** What a read works with. */
export type Reading = Omit<Work, "moved">;

/**
 * Reads committed rows on a connection of its own: never an open transaction's, never under the write
 * lock, and without a snapshot that outlives the call, which would keep the WAL from being reset.
 */
export class Reader {
  readonly #driver: SqliteDriver;
  readonly #database: SqliteDatabase;
  readonly #statements: Statements;
  readonly #patience: number;
  readonly #assertAlive: (operation: string) => void;
  readonly #closing: AbortSignal;
  #isClosed = false;

  /**
   * `patience`: milliseconds a read waits while the file is being recovered by another process;
   * `closing` ends the wait.
   */
  constructor(
    driver: SqliteDriver,
    database: SqliteDatabase,
    patience: number,
    closing: AbortSignal,
    assertAlive: (operation: string) => void,
  ) {
    this.#driver = driver;
    this.#database = database;
    this.#statements = new Statements(database);
    this.#patience = patience;
    this.#closing = closing;
    this.#assertAlive = assertAlive;
  }

  /** Runs `run`, which only reads; again while the file is busy. */
  async read<T>(operation: string, run: (reading: Reading) => T): Promise<T> {
    let deadline: number | undefined;
    const backoff = new Backoffs(1, 50);
    while (true) {
      if (this.#isClosed) throw new ClosedError(`${operation}: the store is closed`);
      this.#assertAlive(operation);
      try {
        return run({ statements: this.#statements, now: Date.now() });
      } catch (error) {
        deadline ??= performance.now() + this.#patience;
        if (!isBusy(this.#driver, error) || performance.now() >= deadline) {
          throw asDatabaseError(this.#driver, operation, error);
        }
        await pause(backoff.next(), operation, this.#closing);
      }
    }
  }

  /** Closes the connection. */
  close(): void {
    this.#isClosed = true;
    this.#database.close();
  }
}
