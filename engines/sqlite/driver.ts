/**
 * What the engine needs of a SQLite library. A driver is a thin, synchronous wrapper: it neither
 * retries nor interprets, it only makes three libraries look alike.
 */

/**
 * A value that goes into or comes out of a statement. Integers above 2^53 - 1 never come out.
 *
 * Two of the three libraries hand every number to SQLite as a REAL. That is exact, and no different
 * from an integer in comparisons, sums, LIMIT, index searches and INTEGER columns of STRICT tables.
 * It shows in `||`, `/`, `CAST(? AS TEXT)`, `json_object(…)`, `typeof` and TEXT or ANY columns:
 * there write `CAST(? AS INTEGER)`.
 *
 * @example
 * ```ts
 * import type { SqliteValue } from "@alkstore/alkstore/sqlite";
 *
 * const parameters: SqliteValue[] = ["o-1", 1200, null];
 * console.log(parameters);
 * ```
 */
export type SqliteValue = string | number | null;

/**
 * A row, keyed by column name.
 *
 * @example
 * ```ts
 * import type { SqliteRow } from "@alkstore/alkstore/sqlite";
 *
 * const row: SqliteRow = { id: "o-1", total: 1200 };
 * console.log(row["total"]);
 * ```
 */
export type SqliteRow = Record<string, SqliteValue>;

/**
 * What a statement that writes has done.
 *
 * @example
 * ```ts
 * import type { SqliteChanges } from "@alkstore/alkstore/sqlite";
 *
 * const inserted: SqliteChanges = { changes: 1, lastInsertRowid: 42 };
 * console.log(inserted.lastInsertRowid);
 * ```
 */
export interface SqliteChanges {
  /** How many rows were inserted, updated or deleted. */
  readonly changes: number;
  /** The rowid of the last insert on this connection: read it before the next one. */
  readonly lastInsertRowid: number;
}

/**
 * A prepared statement. `Row` is what the SQL selects: the caller of `prepare` vouches for it. Not to
 * be used after `close()`: most libraries throw, Deno before 2.6 crashes.
 *
 * @example
 * ```ts
 * import type { SqliteStatement } from "@alkstore/alkstore/sqlite";
 *
 * function first(statement: SqliteStatement<{ id: string }>): string | undefined {
 *   return statement.get()?.id;
 * }
 * console.log(first({ run: () => ({ changes: 0, lastInsertRowid: 0 }), get: () => undefined, all: () => [] }));
 * ```
 */
export interface SqliteStatement<Row = SqliteRow> {
  /** Runs the statement for its effect. Node 22.13 tells no changes where there is a RETURNING. */
  run(...parameters: readonly SqliteValue[]): SqliteChanges;
  /** The first row, or nothing. It may read all rows: select one. The statement is reset after. */
  get(...parameters: readonly SqliteValue[]): Row | undefined;
  /** All rows. The statement is reset before it returns. */
  all(...parameters: readonly SqliteValue[]): Row[];
}

/**
 * One open connection.
 *
 * @example
 * ```ts
 * import type { SqliteDatabase } from "@alkstore/alkstore/sqlite";
 *
 * function versionOf(database: SqliteDatabase): string | undefined {
 *   return database.prepare<{ version: string }>("SELECT sqlite_version() AS version").get()?.version;
 * }
 * console.log(versionOf.name);
 * ```
 */
export interface SqliteDatabase<Connection = unknown> {
  /** The library's own connection object. */
  readonly connection: Connection;
  /** Whether a transaction is open on the connection, by whomever it was begun. */
  readonly inTransaction: boolean;
  /** Runs SQL without parameters and without a result. Several statements are allowed. */
  exec(sql: string): void;
  /** Prepares one statement; it is finalized with the connection at the latest. */
  prepare<Row = SqliteRow>(sql: string): SqliteStatement<Row>;
  /** Finalizes all statements and closes the connection. */
  close(): void;
}

/**
 * A SQLite library.
 *
 * @example
 * ```ts
 * import type { SqliteDriver } from "@alkstore/alkstore/sqlite";
 *
 * // A driver like another one, that says when it opens a file.
 * function talkative(driver: SqliteDriver): SqliteDriver {
 *   return {
 *     ...driver,
 *     open: (path, options) => {
 *       console.log(`opening ${path}`);
 *       return driver.open(path, options);
 *     },
 *   };
 * }
 * console.log(talkative.name);
 * ```
 */
export interface SqliteDriver<Connection = unknown> {
  /** `"ffi"`, `"node"` or `"better-sqlite3"`. */
  readonly name: string;
  /** Opens the file at `path`, creating it when it is missing and `readOnly` is not set. */
  open(path: string, options?: { readonly readOnly?: boolean }): SqliteDatabase<Connection>;
  /** Whether `connection` is one of this library's connection objects. */
  owns(connection: unknown): connection is Connection;
  /** Wraps a connection the caller opened; closing the wrapper leaves the connection open. */
  wrap(connection: Connection): SqliteDatabase<Connection>;
  /**
   * The SQLite result code of an error this library threw, extended where the library tells it
   * (517 SQLITE_BUSY_SNAPSHOT), primary otherwise (5 SQLITE_BUSY); nothing for other errors.
   */
  resultCode(error: unknown): number | undefined;
}
