import { statSync } from "node:fs";
import type {
  BeginOptions,
  Engine,
  EngineEvent,
  EngineStatus,
  JoinedSession,
  TxSession,
  WakeSource,
} from "../../core/engine.ts";
import { ClosedError, DatabaseError } from "../../core/errors.ts";
import { openConnection } from "./database.ts";
import type { SqliteDatabase, SqliteDriver } from "./driver.ts";
import { identityOf, type SharedFile, type WatchSettings } from "./file.ts";
import { JoinedTransaction } from "./joined.ts";
import { Reader } from "./reader.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { SqliteSession } from "./session.ts";
import { settle } from "./settle.ts";
import { Statements } from "./statements.ts";
import { SqliteTransaction, type TransactionOptions } from "./transaction.ts";
import type { Watcher } from "./watcher.ts";
import { Writer } from "./writer.ts";

/** The idle -wal file is truncated when it is larger than this, in bytes: 4 MiB. */
const WAL_KEPT = 4 * 1_024 * 1_024;

/** What an engine is made of. */
export interface SqliteEngineParts {
  readonly driver: SqliteDriver;
  /** The writer's connection, with the tables in place. */
  readonly database: SqliteDatabase;
  readonly file: SharedFile;
  readonly watch: WatchSettings;
  /** Milliseconds a call waits for the right to write. */
  readonly writerTimeout: number;
  /** Whether a commit waits for the disk. */
  readonly isFull: boolean;
  /** Removes a temporary file; called when everything is closed. */
  readonly remove: (() => Promise<void>) | undefined;
}

/** SQLite behind the contract: three connections, one writer, one wake loop. */
export class SqliteEngine implements Engine<unknown> {
  readonly notifyLimit: undefined;
  readonly session: SqliteSession;
  readonly wakes: WakeSource;
  onEvent: (event: EngineEvent) => void = () => {};
  readonly #parts: SqliteEngineParts;
  readonly #writer: Writer;
  readonly #reader: Reader;
  readonly #watcher: Watcher;
  /** What all transactions are made of. */
  readonly #transactions: TransactionOptions;
  readonly #report = (event: EngineEvent): void => this.onEvent(event);
  readonly #joined: WeakMap<object, Statements> = new WeakMap();
  readonly #closing: AbortController = new AbortController();
  #isClosed = false;

  /** Opens the reader; the watcher's connection opens when somebody waits. */
  constructor(parts: SqliteEngineParts) {
    this.#parts = parts;
    const { driver, database, file, watch, writerTimeout, isFull } = parts;
    const closing = this.#closing.signal;
    const assertAlive = (operation: string) => this.#assertAlive(operation);
    this.#writer = new Writer({
      driver,
      database,
      slot: file.slot,
      timeout: writerTimeout,
      closing,
      assertAlive,
      committed: (moved) => {
        if (isFull) file.touch();
        file.committed(moved);
      },
    });
    const readerDatabase = openConnection(driver, file.path);
    this.#reader = new Reader(driver, readerDatabase, writerTimeout, closing, assertAlive);
    this.#watcher = file.watcher(watch, () => openConnection(driver, file.path), this.#report);
    this.wakes = this.#watcher;
    this.#transactions = {
      driver,
      database,
      writer: this.#writer,
      slot: file.slot,
      assertAlive,
      isWatched: () => file.isWatched,
    };
    this.session = new SqliteSession(this.#writer, this.#reader, () => this.#truncateWal());
  }

  async begin({ label, signal }: BeginOptions): Promise<TxSession<unknown>> {
    const operation = "Cannot begin a transaction";
    const entry = this.#writer.beginNow(operation, label) ??
      await this.#writer.begin(operation, label, signal);
    return new SqliteTransaction(this.#transactions, entry);
  }

  join(connection: unknown): Promise<JoinedSession<unknown>> {
    return settle(() => this.#join(connection, "Cannot join a transaction"));
  }

  async status(): Promise<EngineStatus> {
    const { driver, file, isFull } = this.#parts;
    let healthy = true;
    let version = SCHEMA_VERSION;
    try {
      version = await this.#reader.read(
        "Cannot read status",
        ({ statements }) =>
          statements.get<{ value: number }>(
            "SELECT value FROM __alkstore_meta WHERE key = 'schema_version'",
          ).get()?.value ?? 0,
      );
    } catch {
      healthy = false;
    }
    const { holder, heldFor } = file.slot;
    return {
      engine: "sqlite",
      driver: driver.name,
      schemaVersion: version,
      wake: this.#watcher.mode,
      wakeReason: this.#watcher.reason ?? this.#watcher.dead?.message,
      healthy,
      details: {
        path: file.path,
        durability: isFull ? "full" : "normal",
        walBytes: walSize(file.path),
        writer: holder?.label(),
        writerHeldMs: holder === undefined ? undefined : Math.round(heldFor),
      },
    };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { database, file, remove } = this.#parts;
    this.#closing.abort();
    this.#writer.close();
    this.#writer.rollback();
    await file.release(this.#report);
    this.#reader.close();
    // Last: closing the last connection checkpoints and removes the -wal file.
    database.close();
    await remove?.();
  }

  #assertAlive(operation: string): void {
    if (this.#isClosed) throw new ClosedError(`${operation}: the store is closed`);
    const dead = this.#watcher.dead ?? this.#parts.file.loss();
    if (dead === undefined) return;
    throw new DatabaseError(`${operation}: the database file was lost, close and open the store`, {
      cause: dead,
    });
  }

  #join(connection: unknown, operation: string): JoinedSession<unknown> {
    const { driver, database, writerTimeout } = this.#parts;
    if (connection === database.connection) {
      throw new TypeError(`${operation}: this is the store's own connection, use its tx`);
    }
    const session = new JoinedTransaction(
      driver,
      connection,
      this.#statementsOf(connection, operation),
      writerTimeout,
      this.#closing.signal,
    );
    session.assertInTransaction(operation);
    return session;
  }

  /** The prepared statements of a connection of the caller's, checked once. */
  #statementsOf(connection: unknown, operation: string): Statements {
    const { driver, file } = this.#parts;
    if (!driver.owns(connection)) {
      throw new TypeError(
        `${operation}: the connection is none of driver "${driver.name}": open the store with the ` +
          `driver the application uses`,
      );
    }
    const key: object = connection as object;
    const known = this.#joined.get(key);
    if (known !== undefined) return known;
    const statements = new Statements(driver.wrap(connection));
    const path = mainFile(statements, operation);
    if (path === "" || identityOf(path) !== file.identity) {
      throw new TypeError(
        `${operation}: the connection is to ${JSON.stringify(path)}, the store to ${
          JSON.stringify(file.path)
        }`,
      );
    }
    this.#joined.set(key, statements);
    return statements;
  }

  /** Truncates a large -wal file when nobody is in the way; a busy one is left to the next time. */
  async #truncateWal(): Promise<void> {
    if (walSize(this.#parts.file.path) <= WAL_KEPT) return;
    await this.#writer.between("a checkpoint", (database) => {
      database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
    });
  }
}

function mainFile(statements: Statements, operation: string): string {
  try {
    const rows = statements.get<{ name: string; file: string | null }>("PRAGMA database_list")
      .all();
    return rows.find((row) => row.name === "main")?.file ?? "";
  } catch (cause) {
    throw new ClosedError(`${operation}: the connection is closed`, { cause });
  }
}

/** By `stat`: the file must not be opened. */
function walSize(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
