/**
 * The `node:sqlite` driver: built into Deno and Node ≥ 22.13. Loaded by `drivers.ts` with a dynamic
 * import, because the module is missing elsewhere.
 */
import { DatabaseSync } from "node:sqlite";
import type { SqliteDatabase, SqliteDriver, SqliteRow, SqliteStatement } from "../driver.ts";
import { prepareNumbered } from "./numbered.ts";
import { resultCodeOfMessage } from "./results.ts";

class NodeDatabase implements SqliteDatabase<DatabaseSync> {
  readonly connection: DatabaseSync;
  readonly #owned: boolean;

  constructor(connection: DatabaseSync, owned: boolean) {
    this.connection = connection;
    this.#owned = owned;
  }

  get inTransaction(): boolean {
    let known: boolean | undefined;
    try {
      known = this.connection.isTransaction;
    } catch {
      return false; // The connection is closed.
    }
    return known ?? this.#probeTransaction();
  }

  /** For Node before 22.16 and Deno before 2.8: BEGIN takes no lock and fails in a transaction. */
  #probeTransaction(): boolean {
    try {
      this.connection.prepare("BEGIN").run();
    } catch (error) {
      return resultCode(error) !== undefined;
    }
    this.connection.prepare("ROLLBACK").run();
    return false;
  }

  exec(sql: string): void {
    this.connection.exec(sql);
  }

  prepare<Row = SqliteRow>(sql: string): SqliteStatement<Row> {
    return bindsByNumber()
      ? this.#prepare(sql)
      : prepareNumbered(sql, (plain) => this.#prepare<Row>(plain));
  }

  #prepare<Row>(sql: string): SqliteStatement<Row> {
    const statement = this.connection.prepare(sql);
    // A caller's connection may have other defaults.
    statement.setReadBigInts(false);
    if ("setReturnArrays" in statement && typeof statement.setReturnArrays === "function") {
      statement.setReturnArrays(false);
    }
    // The library's own object, no wrapper: with these settings it is a SqliteStatement, which its
    // types cannot say; the caller vouches for the row.
    return statement as unknown as SqliteStatement<Row>;
  }

  close(): void {
    if (this.#owned) this.connection.close();
  }
}

let numbers: boolean | undefined;

/** Whether this runtime binds `?1` by its number; tried once. */
function bindsByNumber(): boolean {
  if (numbers === undefined) {
    const connection = new DatabaseSync(":memory:");
    try {
      const row = connection.prepare("SELECT ?2 AS second, ?1 || ?1 AS first").get("a", "b");
      numbers = row?.["second"] === "b" && row["first"] === "aa";
    } catch {
      numbers = false;
    } finally {
      connection.close();
    }
  }
  return numbers;
}

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR")) return;
  // In Deno an error of exec() or open() has no errcode.
  return "errcode" in error && typeof error.errcode === "number"
    ? error.errcode
    : resultCodeOfMessage(error.message);
}

/** The `node:sqlite` driver. */
export const nodeDriver: SqliteDriver<DatabaseSync> = {
  name: "node",
  open(path, options) {
    const connection = new DatabaseSync(path, { readOnly: options?.readOnly ?? false });
    connection.exec("PRAGMA busy_timeout = 0"); // 5,000 ms in Deno before 2.8.
    return new NodeDatabase(connection, true);
  },
  owns: (connection) => connection instanceof DatabaseSync,
  wrap: (connection) => new NodeDatabase(connection, false),
  resultCode,
};
