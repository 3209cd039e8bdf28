import type { SqliteChanges, SqliteStatement, SqliteValue } from "../driver.ts";

/** A numbered parameter: `?1`. */
const NUMBERED = /\?(\d+)/g;

/**
 * Prepares a statement whose parameters are numbered with a library that takes `?1` for a name:
 * better-sqlite3, Node before 22.15, Deno before 2.6. They become plain ones, and a value that occurs
 * twice is bound twice. Plain and numbered parameters do not occur together.
 */
export function prepareNumbered<Row>(
  sql: string,
  prepare: (sql: string) => SqliteStatement<Row>,
): SqliteStatement<Row> {
  const order: number[] = [];
  const plain = sql.replace(NUMBERED, (_, number: string) => {
    order.push(Number(number) - 1);
    return "?";
  });
  const statement = prepare(plain);
  return order.length === 0 ? statement : new NumberedStatement(statement, order);
}

class NumberedStatement<Row> implements SqliteStatement<Row> {
  readonly #statement: SqliteStatement<Row>;
  /** Which of the given values stands at each place. */
  readonly #order: readonly number[];

  constructor(statement: SqliteStatement<Row>, order: readonly number[]) {
    this.#statement = statement;
    this.#order = order;
  }

  run(...parameters: readonly SqliteValue[]): SqliteChanges {
    return this.#statement.run(...this.#arrange(parameters));
  }

  get(...parameters: readonly SqliteValue[]): Row | undefined {
    return this.#statement.get(...this.#arrange(parameters));
  }

  all(...parameters: readonly SqliteValue[]): Row[] {
    return this.#statement.all(...this.#arrange(parameters));
  }

  #arrange(parameters: readonly SqliteValue[]): SqliteValue[] {
    return this.#order.map((index) => parameters[index] ?? null);
  }
}
