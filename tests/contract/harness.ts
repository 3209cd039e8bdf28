import type { Store } from "../../mod.ts";

/** What the contract suite is run against: one engine with one driver, in one runtime. */
export interface Harness {
  /** `sqlite node`: the start of every test's name. */
  readonly name: string;
  /** Registers a test with the runner at hand. */
  readonly test: (name: string, run: () => Promise<void>) => void;
  /** Makes an empty database. */
  readonly create: () => Promise<TestDatabase>;
  /** Where engines differ, as data. */
  readonly traits: Traits;
}

/** Differences the contract allows. */
export interface Traits {
  /** The largest notify payload in bytes of UTF-8, if there is one. */
  readonly notifyLimit: number | undefined;
  /** Whether two transactions of one store can be open at the same time. */
  readonly concurrentTransactions: boolean;
  /** Whether a transaction survives a failed business statement. */
  readonly survivesFailedStatement: boolean;
}

/** What a test may want to be different. Durations are milliseconds. */
export interface OpenOptions {
  /** The safety poll; off by default, so that wakes are what is tested. */
  readonly poll?: { readonly min: number; readonly max: number };
  /** Off: wakes come by polling only. */
  readonly push?: boolean;
  /** How long a transaction may be open. */
  readonly txTimeout?: number;
  /** How often the background sweep runs; hardly ever by default. */
  readonly sweepInterval?: number;
  /** How long a write waits for its turn. */
  readonly writerTimeout?: number;
}

/** One database of one test, and what the test does to it from outside the store. */
export interface TestDatabase extends AsyncDisposable {
  /** Opens a store on it; closed with the database at the latest. Several can be open. */
  open(options?: OpenOptions): Promise<Store<unknown>>;
  /** The business side, through a connection or transaction of the driver: `tx.connection`. */
  readonly business: Business;
  /** Begins a transaction with the application's own connection, for `joinTx`. */
  beginForeign(): Promise<ForeignTransaction>;
  /** Overwrites the stored payload of a job with `text`, which need not be JSON. */
  poisonJob(id: number, text: string): Promise<void>;
  /** Overwrites the stored payload of an event. */
  poisonEvent(offset: number, text: string): Promise<void>;
  /** How many rows alkstore's tables hold in all: nothing was written when it stays the same. */
  countRows(): Promise<number>;
}

/** A table of the application in the same database: `orders(id text primary key)`. */
export interface Business {
  /** Inserts an order through a connection of the driver. */
  insert(connection: unknown, id: string): Promise<void>;
  /** Runs a statement that fails. */
  fail(connection: unknown): Promise<void>;
  /** The ids of all committed orders, ascending. */
  list(): Promise<string[]>;
}

/** A transaction of the application's own. */
export interface ForeignTransaction {
  /** What is passed to `joinTx`. */
  readonly connection: unknown;
  /** Commits it. */
  commit(): Promise<void>;
  /** Rolls it back. */
  rollback(): Promise<void>;
  /** Releases the connection; rolls back what is open. */
  close(): Promise<void>;
}

/** Runs a test on an empty database with one open store. */
export function testStore(
  harness: Harness,
  name: string,
  run: (store: Store<unknown>, database: TestDatabase) => Promise<void>,
  options?: OpenOptions,
): void {
  harness.test(`${harness.name}: ${name}`, async () => {
    const database = await harness.create();
    try {
      await run(await database.open(options), database);
    } finally {
      await database[Symbol.asyncDispose]();
    }
  });
}

/** Runs a test on an empty database; the test opens its stores. */
export function testDatabase(
  harness: Harness,
  name: string,
  run: (database: TestDatabase) => Promise<void>,
): void {
  harness.test(`${harness.name}: ${name}`, async () => {
    const database = await harness.create();
    try {
      await run(database);
    } finally {
      await database[Symbol.asyncDispose]();
    }
  });
}
