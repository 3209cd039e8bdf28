/** The driver for a `better-sqlite3` (or a compatible library) that the caller passes in. */
import type {
  SqliteChanges,
  SqliteDatabase,
  SqliteDriver,
  SqliteRow,
  SqliteStatement,
  SqliteValue,
} from "../driver.ts";
import { prepareNumbered } from "./numbered.ts";
import { exact } from "./results.ts";

/**
 * What is needed of a `better-sqlite3` statement.
 *
 * @example
 * ```ts
 * import type { BetterSqlite3Statement } from "@alkstore/alkstore/sqlite";
 *
 * function countOf(statement: BetterSqlite3Statement): number {
 *   return statement.reader ? statement.all().length : statement.run().changes;
 * }
 * console.log(countOf.name);
 * ```
 */
export interface BetterSqlite3Statement {
  /** Whether the statement returns rows. */
  readonly reader: boolean;
  /** Whether integers are read as `bigint`. */
  safeIntegers(toggle: boolean): unknown;
  /** Runs the statement for its effect. */
  run(...parameters: unknown[]): { changes: number; lastInsertRowid: number | bigint };
  /** The first row; throws on a statement that returns none. */
  get(...parameters: unknown[]): unknown;
  /** All rows; throws on a statement that returns none. */
  all(...parameters: unknown[]): unknown[];
}

/**
 * What is needed of a `better-sqlite3` connection.
 *
 * @example
 * ```ts
 * import type { BetterSqlite3Connection } from "@alkstore/alkstore/sqlite";
 *
 * function insertOrder(connection: BetterSqlite3Connection, id: string): void {
 *   connection.prepare("INSERT INTO orders (id) VALUES (?)").run(id);
 * }
 * console.log(insertOrder.name);
 * ```
 */
export interface BetterSqlite3Connection {
  /** Whether a transaction is open. */
  readonly inTransaction: boolean;
  /** Runs several statements without parameters. */
  exec(sql: string): unknown;
  /** Prepares one statement. */
  prepare(sql: string): BetterSqlite3Statement;
  /** Finalizes all statements and closes the connection. */
  close(): unknown;
}

/**
 * The constructor that `better-sqlite3` exports.
 *
 * @example
 * ```ts
 * import { type BetterSqlite3, openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * // import Database from "better-sqlite3";
 * async function countReady(Database: BetterSqlite3): Promise<number> {
 *   const store = await openSqlite("app.db", { driver: Database });
 *   const { ready } = await store.queue("mail").stats();
 *   await store.close();
 *   return ready;
 * }
 * console.log(countReady.name);
 * ```
 */
export interface BetterSqlite3<
  Connection extends BetterSqlite3Connection = BetterSqlite3Connection,
> {
  /** Opens `path`. */
  new (
    path: string,
    options?: { readonly?: boolean; fileMustExist?: boolean; timeout?: number },
  ): Connection;
}

class Statement<Row> implements SqliteStatement<Row> {
  readonly #statement: BetterSqlite3Statement;
  readonly #reader: boolean;

  constructor(statement: BetterSqlite3Statement) {
    statement.safeIntegers(false); // A caller's connection may have another default.
    this.#statement = statement;
    this.#reader = statement.reader;
  }

  run(...parameters: readonly SqliteValue[]): SqliteChanges {
    return this.#statement.run(...parameters) as SqliteChanges; // No bigint: safeIntegers is off.
  }

  get(...parameters: readonly SqliteValue[]): Row | undefined {
    if (!this.#reader) {
      this.#statement.run(...parameters);
      return undefined;
    }
    return exact(this.#statement.get(...parameters) as Row | undefined);
  }

  all(...parameters: readonly SqliteValue[]): Row[] {
    if (!this.#reader) {
      this.#statement.run(...parameters);
      return [];
    }
    const rows = this.#statement.all(...parameters) as Row[];
    for (const row of rows) exact(row);
    return rows;
  }
}

class Database<Connection extends BetterSqlite3Connection> implements SqliteDatabase<Connection> {
  readonly connection: Connection;
  readonly #owned: boolean;

  constructor(connection: Connection, owned: boolean) {
    this.connection = connection;
    this.#owned = owned;
  }

  get inTransaction(): boolean {
    return this.connection.inTransaction;
  }

  exec(sql: string): void {
    this.connection.exec(sql);
  }

  prepare<Row = SqliteRow>(sql: string): SqliteStatement<Row> {
    return prepareNumbered(sql, (plain) => new Statement<Row>(this.connection.prepare(plain)));
  }

  close(): void {
    if (this.#owned) this.connection.close();
  }
}

/** Result codes by name: extended where callers tell them apart, primary otherwise. */
const CODES: Readonly<Record<string, number>> = {
  SQLITE_ERROR: 1,
  SQLITE_BUSY: 5,
  SQLITE_BUSY_RECOVERY: 261,
  SQLITE_BUSY_SNAPSHOT: 517,
  SQLITE_BUSY_TIMEOUT: 773,
  SQLITE_LOCKED: 6,
  SQLITE_NOMEM: 7,
  SQLITE_READONLY: 8,
  SQLITE_INTERRUPT: 9,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_PROTOCOL: 15,
  SQLITE_SCHEMA: 17,
  SQLITE_TOOBIG: 18,
  SQLITE_CONSTRAINT: 19,
  SQLITE_MISMATCH: 20,
  SQLITE_RANGE: 25,
  SQLITE_NOTADB: 26,
};

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("code" in error && typeof error.code === "string") {
    return CODES[error.code] ?? CODES[error.code.split("_", 2).join("_")];
  }
  // The library looks for the directory itself, before SQLite does.
  return error.message.startsWith("Cannot open database because") ? 14 : undefined;
}

/** Makes a driver of the constructor that `better-sqlite3` exports. */
export function betterSqlite3<Connection extends BetterSqlite3Connection>(
  Library: BetterSqlite3<Connection>,
): SqliteDriver<Connection> {
  return {
    name: "better-sqlite3",
    open(path, options) {
      const readonly = options?.readOnly ?? false;
      const connection = new Library(path, { readonly, fileMustExist: readonly, timeout: 0 });
      return new Database(connection, true);
    },
    owns: (connection): connection is Connection => connection instanceof Library,
    wrap: (connection) => new Database(connection, false),
    resultCode,
  };
}
