import { ClosedError } from "../../core/errors.ts";
import { Backoffs } from "../../core/timers.ts";
import type { SqliteDriver } from "./driver.ts";
import { asDatabaseError, isBusy } from "./errors.ts";
import { Moved } from "./moved.ts";
import { pause } from "./pause.ts";
import { TransactionOperations } from "./session.ts";
import type { Statements } from "./statements.ts";
import type { Work } from "./work.ts";

/**
 * A transaction the caller opened on a connection of its own. Its commit is seen by the wake loop like
 * that of another process.
 */
export class JoinedTransaction extends TransactionOperations<unknown> {
  readonly connection: unknown;
  readonly #driver: SqliteDriver;
  readonly #statements: Statements;
  readonly #patience: number;
  readonly #closing: AbortSignal;

  /**
   * `patience`: milliseconds an operation waits for another writer, in a DEFERRED transaction;
   * `closing` ends the wait.
   */
  constructor(
    driver: SqliteDriver,
    connection: unknown,
    statements: Statements,
    patience: number,
    closing: AbortSignal,
  ) {
    super();
    this.connection = connection;
    this.#driver = driver;
    this.#statements = statements;
    this.#patience = patience;
    this.#closing = closing;
  }

  /** Refuses a connection without an open transaction: the write would commit by itself. */
  assertInTransaction(operation: string): void {
    if (!this.#statements.database.inTransaction) {
      throw new ClosedError(`${operation}: no transaction is open on the connection`);
    }
  }

  protected override async write<T>(operation: string, run: (work: Work) => T): Promise<T> {
    const deadline = performance.now() + this.#patience;
    const backoff = new Backoffs(1, 20);
    while (true) {
      this.assertInTransaction(operation);
      try {
        return run({ statements: this.#statements, now: Date.now(), moved: new Moved() });
      } catch (error) {
        // Its first write did not get the lock: nothing was written, and the transaction goes on.
        if (!isBusy(this.#driver, error) || performance.now() >= deadline) {
          throw asDatabaseError(this.#driver, operation, error);
        }
        await pause(backoff.next(), operation, this.#closing);
      }
    }
  }
}
