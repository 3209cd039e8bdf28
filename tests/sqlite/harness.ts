import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  openSqlite,
  type SqliteConnection,
  type SqliteDriverChoice,
} from "../../engines/sqlite.ts";
import type { SqliteDatabase, SqliteDriver } from "../../engines/sqlite/driver.ts";
import { loadDriver } from "../../engines/sqlite/drivers.ts";
import type { Store } from "../../mod.ts";
import type {
  Business,
  ForeignTransaction,
  Harness,
  OpenOptions,
  TestDatabase,
} from "../contract/harness.ts";

/** The harness of the SQLite engine with one driver; runs in Deno and in Node. */
export function sqliteHarness(
  driver: SqliteDriverChoice,
  name: string,
  test: Harness["test"],
): Harness {
  return {
    name: `sqlite ${name}`,
    test,
    traits: {
      notifyLimit: undefined,
      concurrentTransactions: false,
      survivesFailedStatement: true,
    },
    create: async () => {
      const folder = await mkdtemp(join(tmpdir(), "alkstore-test-"));
      return new SqliteTestDatabase(driver, await loadDriver(driver), folder);
    },
  };
}

const TABLES = [
  "jobs",
  "events",
  "floors",
  "consumers",
  "locks",
  "wakes",
];

class SqliteTestDatabase implements TestDatabase {
  readonly path: string;
  readonly business: Business;
  readonly #choice: SqliteDriverChoice;
  readonly #driver: SqliteDriver;
  readonly #folder: string;
  readonly #stores: Store<unknown>[] = [];
  readonly #foreign: SqliteDatabase[] = [];

  constructor(choice: SqliteDriverChoice, driver: SqliteDriver, folder: string) {
    this.#choice = choice;
    this.#driver = driver;
    this.#folder = folder;
    this.path = join(folder, "app.db");
    this.business = {
      insert: (connection, id) => {
        (connection as SqliteConnection).prepare("INSERT INTO orders (id) VALUES (?)").run(id);
        return Promise.resolve();
      },
      fail: (connection) => {
        try {
          (connection as SqliteConnection).prepare("INSERT INTO orders (id) VALUES (NULL)").run();
        } catch {
          return Promise.resolve();
        }
        return Promise.reject(new Error("the statement should have failed"));
      },
      list: () =>
        Promise.resolve(
          this.#query<{ id: string }>("SELECT id FROM orders ORDER BY id").map(({ id }) => id),
        ),
    };
  }

  async open(options: OpenOptions = {}): Promise<Store<unknown>> {
    const { push = true, poll = false, sweepInterval = 3_600_000, ...others } = options;
    const store = await openSqlite<unknown>(this.path, {
      driver: this.#choice,
      watchFiles: push,
      poll,
      sweepInterval,
      ...others,
    });
    this.#stores.push(store);
    if (this.#stores.length === 1) {
      this.#query("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY NOT NULL)");
    }
    return store;
  }

  beginForeign(): Promise<ForeignTransaction> {
    const database = this.#open();
    this.#foreign.push(database);
    database.prepare("BEGIN IMMEDIATE").run();
    const end = (statement: string) => {
      database.prepare(statement).run();
      return Promise.resolve();
    };
    return Promise.resolve({
      connection: database.connection,
      commit: () => end("COMMIT"),
      rollback: () => end("ROLLBACK"),
      close: () => {
        if (database.inTransaction) database.prepare("ROLLBACK").run();
        this.#foreign.splice(this.#foreign.indexOf(database), 1);
        database.close();
        return Promise.resolve();
      },
    });
  }

  poisonJob(id: number, text: string): Promise<void> {
    this.#query("UPDATE __alkstore_jobs SET payload = ? WHERE id = ?", text, id);
    return Promise.resolve();
  }

  poisonEvent(offset: number, text: string): Promise<void> {
    this.#query(`UPDATE __alkstore_events SET payload = ? WHERE "offset" = ?`, text, offset);
    return Promise.resolve();
  }

  countRows(): Promise<number> {
    const counts = TABLES.map((table) => `(SELECT count(*) FROM __alkstore_${table})`);
    const [row] = this.#query<{ total: number }>(`SELECT ${counts.join(" + ")} AS total`);
    return Promise.resolve(row?.total ?? 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close({ drain: 0 });
    for (const database of this.#foreign.splice(0)) database.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #open(): SqliteDatabase {
    const database = this.#driver.open(this.path);
    // The tests' own statements may wait: nobody holds the lock for long.
    database.prepare("PRAGMA busy_timeout = 5000").all();
    return database;
  }

  #query<Row>(sql: string, ...parameters: (string | number)[]): Row[] {
    const database = this.#open();
    try {
      return database.prepare<Row>(sql).all(...parameters);
    } finally {
      database.close();
    }
  }
}
