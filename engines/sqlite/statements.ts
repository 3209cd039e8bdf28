import type { SqliteDatabase, SqliteRow, SqliteStatement } from "./driver.ts";

/** The prepared statements of one connection, each prepared when it is first run. */
export class Statements {
  readonly database: SqliteDatabase;
  readonly #prepared: Map<string, SqliteStatement<unknown>> = new Map();

  /** Prepares nothing yet. */
  constructor(database: SqliteDatabase) {
    this.database = database;
  }

  /** The statement for `sql`; `Row` is what it selects. */
  get<Row = SqliteRow>(sql: string): SqliteStatement<Row> {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    // One text is always asked for with the same row type.
    return statement as SqliteStatement<Row>;
  }
}
