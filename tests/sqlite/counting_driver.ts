import type { SqliteDatabase, SqliteDriver, SqliteStatement } from "../../engines/sqlite.ts";
import { loadDriver } from "../../engines/sqlite/drivers.ts";

/** `node:sqlite` as a driver of the caller's own, with a count of the commits. */
export interface CountingDriver {
  /** What `openSqlite` is given. */
  readonly driver: SqliteDriver;
  /** How many transactions `work` commits on all connections together. */
  commitsOf(work: () => Promise<unknown>): Promise<number>;
}

/** Makes one. It counts COMMIT statements, and writes outside a transaction. */
export async function countingDriver(): Promise<CountingDriver> {
  const { open, ...others } = await loadDriver("node");
  let commits = 0;

  const count = (database: SqliteDatabase, sql: string, run: () => unknown): unknown => {
    const wasOpen = database.inTransaction;
    const before = wasOpen ? 0 : changesOf(database);
    const result = run();
    if (/^\s*(COMMIT|END)/i.test(sql)) commits++;
    else if (!wasOpen && !database.inTransaction && changesOf(database) > before) commits++;
    return result;
  };

  const counted = (database: SqliteDatabase): SqliteDatabase => ({
    get connection() {
      return database.connection;
    },
    get inTransaction() {
      return database.inTransaction;
    },
    exec: (sql) => void count(database, sql, () => database.exec(sql)),
    prepare: <Row>(sql: string) => {
      const statement = database.prepare<Row>(sql);
      const call = (method: "run" | "get" | "all") => (...parameters: (string | number | null)[]) =>
        count(database, sql, () => statement[method](...parameters));
      return { run: call("run"), get: call("get"), all: call("all") } as SqliteStatement<Row>;
    },
    close: () => database.close(),
  });

  return {
    driver: { ...others, open: (path, options) => counted(open(path, options)) },
    commitsOf: async (work) => {
      const before = commits;
      await work();
      return commits - before;
    },
  };
}

function changesOf(database: SqliteDatabase): number {
  return database.prepare<{ total: number }>("SELECT total_changes() AS total").get()?.total ?? 0;
}
