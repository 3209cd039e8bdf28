/** A database file for one test, and everybody who uses it. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite, type SqliteConnection, type SqliteOptions } from "../../engines/sqlite.ts";
import type { Store } from "../../mod.ts";
import { Child } from "./child.ts";

/** Registers a test that has a database file, which does not exist yet, in a folder of its own. */
export function testFile(name: string, run: (file: TestFile) => Promise<void>): void {
  Deno.test(`sqlite: ${name}`, async () => {
    await using file = await TestFile.make();
    await run(file);
  });
}

/** The file, and what is to be ended with it. */
export class TestFile implements AsyncDisposable {
  readonly folder: string;
  /** Path of the file. */
  readonly path: string;
  readonly #users: AsyncDisposable[] = [];

  private constructor(folder: string) {
    this.folder = folder;
    this.path = join(folder, "app.db");
  }

  /** Makes the folder. */
  static async make(): Promise<TestFile> {
    return new TestFile(await mkdtemp(join(tmpdir(), "alkstore-test-")));
  }

  /** Opens a store in this process; without a safety poll, so that wakes are what is tested. */
  async open(options: SqliteOptions = {}): Promise<Store<SqliteConnection>> {
    const store = await openSqlite(this.path, {
      driver: "node",
      poll: false,
      sweepInterval: 3_600_000,
      ...options,
    });
    this.#users.push(store);
    return store;
  }

  /** Starts processes that have a store on the file, opened with these options. */
  async storekeepers(count: number, options: SqliteOptions = {}): Promise<Child[]> {
    const children = await this.#start("storekeeper", count);
    for (const child of children) await child.ask("open", { path: this.path, options });
    return children;
  }

  /** Starts a process that has a store on the file. */
  async storekeeper(options: SqliteOptions = {}): Promise<Child> {
    const [child] = await this.storekeepers(1, options);
    return child!;
  }

  /** Starts processes that have not opened anything yet. */
  async newcomers(count: number): Promise<Child[]> {
    return await this.#start("storekeeper", count);
  }

  /** Starts a process that uses the file, which exists, with plain SQL. */
  async outsider(): Promise<Child> {
    const [child] = await this.#start("outsider", 1);
    await child!.ask("open", { path: this.path });
    return child!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const user of this.#users.reverse()) await user[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #start(script: "outsider" | "storekeeper", count: number): Promise<Child[]> {
    const children = await Child.startMany(script, count);
    this.#users.push(...children);
    return children;
  }
}

/** Makes the application's table. */
export async function makeOrders(store: Store<SqliteConnection>): Promise<void> {
  await store.transaction((tx) => {
    tx.connection.exec("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY NOT NULL)");
  });
}

/** The ids of all orders, as a transaction sees them. */
export async function listOrders(store: Store<SqliteConnection>): Promise<string[]> {
  return await store.transaction((tx) => {
    const rows = tx.connection.prepare("SELECT id FROM orders ORDER BY rowid").all();
    return (rows as { id: string }[]).map(({ id }) => id);
  });
}
