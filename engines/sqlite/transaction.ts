import type { TxSession } from "../../core/engine.ts";
import { DatabaseError } from "../../core/errors.ts";
import type { SqliteDatabase, SqliteDriver } from "./driver.ts";
import { asDatabaseError } from "./errors.ts";
import { Moved } from "./moved.ts";
import { TransactionOperations } from "./session.ts";
import { settle } from "./settle.ts";
import type { Entry, Slot } from "./slot.ts";
import { settleMoved } from "./wakes.ts";
import type { Work } from "./work.ts";
import type { Writer } from "./writer.ts";

/** What a transaction needs of its engine. */
export interface TransactionOptions {
  readonly driver: SqliteDriver;
  readonly database: SqliteDatabase;
  readonly writer: Writer;
  readonly slot: Slot;
  /** Throws when the file is no longer the one that was opened. */
  readonly assertAlive: (operation: string) => void;
  /** Whether somebody in this process waits for wakes. */
  readonly isWatched: () => boolean;
}

/** A transaction on the writer's connection. Its operations run at once, in the caller's turn. */
export class SqliteTransaction extends TransactionOperations<unknown>
  implements TxSession<unknown> {
  readonly connection: unknown;
  readonly #options: TransactionOptions;
  /** Its turn, given back at its end. */
  readonly #entry: Entry;
  readonly #moved: Moved = new Moved();
  #failure: Error | undefined;
  #isOver = false;

  /** The transaction has begun. */
  constructor(options: TransactionOptions, entry: Entry) {
    super();
    this.#entry = entry;
    this.connection = options.database.connection;
    this.#options = options;
  }

  commit(): Promise<void> {
    return settle(() => this.#commit());
  }

  rollback(): Promise<void> {
    return settle(() => {
      if (this.#isOver) return;
      this.#options.writer.rollback();
      this.#end();
    });
  }

  protected override write<T>(operation: string, run: (work: Work) => T): Promise<T> {
    return settle(() => {
      this.#assertAlive(operation);
      const { driver, writer } = this.#options;
      try {
        return run({ statements: writer.statements, now: Date.now(), moved: this.#moved });
      } catch (error) {
        this.#failure = asDatabaseError(driver, operation, error);
        throw this.#failure;
      }
    });
  }

  #commit(): void {
    const operation = "Cannot commit";
    const { writer, database, driver, isWatched, assertAlive } = this.#options;
    try {
      this.#assertAlive(operation);
      assertAlive(operation);
      if (isWatched()) {
        settleMoved({ statements: writer.statements, moved: this.#moved });
      } else {
        this.#moved.clear();
      }
      writer.commit(operation, this.#moved);
    } catch (error) {
      if (database.inTransaction) writer.rollback();
      throw asDatabaseError(driver, operation, error);
    } finally {
      this.#end();
    }
  }

  /**
   * SQLite rolls a transaction back by itself when the disk is full, and the caller may have ended it
   * on the connection: the next statement would commit by itself.
   */
  #assertAlive(operation: string): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (!this.#isOver && this.#options.database.inTransaction) return;
    this.#failure = new DatabaseError(
      `${operation}: the transaction is gone, it was ended on its connection or rolled back by SQLite`,
    );
    throw this.#failure;
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.slot.leave(this.#entry);
  }
}
