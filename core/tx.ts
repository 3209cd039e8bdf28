import type { Json } from "./json.ts";
import type { Job, RetryOptions } from "./job.ts";
import type { Lock } from "./lock.ts";
import type { Outbox } from "./outbox.ts";
import type { Payload } from "./payload.ts";
import type { EnqueueOpts, Queue } from "./queue.ts";
import type { EventInput, Stream } from "./stream.ts";

/**
 * How a transaction is begun.
 *
 * @example
 * ```ts
 * import type { TxOptions } from "@alkstore/alkstore";
 *
 * const patient: TxOptions = { timeout: 120_000 };
 * console.log(patient);
 * ```
 */
export interface TxOptions {
  /**
   * Milliseconds after which an abandoned transaction is rolled back; its next call is a
   * `ClosedError` that says where it was opened. `Infinity` never. @default {30_000}
   */
  readonly timeout?: number;
  /** Ends the wait for a turn: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * How `transaction` runs its work.
 *
 * @example
 * ```ts
 * import type { TransactionOptions } from "@alkstore/alkstore";
 *
 * const stubborn: TransactionOptions = { retries: 3 };
 * console.log(stubborn);
 * ```
 */
export interface TransactionOptions extends TxOptions {
  /**
   * How often the whole work is run again after a retryable `DatabaseError`, with short random delays
   * between. Its effects outside the database are then repeated too. @default {0}
   */
  readonly retries?: number;
}

/**
 * What happens to the transaction when what a call relies on was lost.
 *
 * @example
 * ```ts
 * import type { LostOptions } from "@alkstore/alkstore";
 *
 * const tolerant: LostOptions = { ifLost: "ignore" };
 * console.log(tolerant);
 * ```
 */
export interface LostOptions {
  /**
   * `rollback`: the transaction is rolled back and cannot commit, so that the writes of a stale holder
   * do not. `ignore`: the call only returns false. @default {"rollback"}
   */
  readonly ifLost?: "rollback" | "ignore";
}

/**
 * How an offset is saved in a transaction.
 *
 * @example
 * ```ts
 * import type { SaveOffsetOptions } from "@alkstore/alkstore";
 *
 * const exact: SaveOffsetOptions = { from: 41 };
 * console.log(exact);
 * ```
 */
export interface SaveOffsetOptions extends LostOptions {
  /** The offset lands only when this is what is stored, 0 for none. @default any smaller one */
  readonly from?: number;
}

/**
 * The messages of a transaction: each commits or rolls back with the business writes on `connection`.
 *
 * This is what handlers get and what `joinTx` gives: the transaction is committed by somebody else.
 * Names are accepted in place of handles and stamp the defaults; a handle of another store is a
 * `TypeError`. Errors in the arguments leave the transaction usable; after a `DatabaseError` it is
 * rolled back and later calls reject with that error in `cause`.
 *
 * @example
 * ```ts
 * import { DatabaseSync } from "node:sqlite";
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * const path = `${await Deno.makeTempDir()}/app.db`;
 * await using store = await openSqlite(path, { driver: "node" });
 * const app = new DatabaseSync(path);
 *
 * app.exec("BEGIN IMMEDIATE");
 * const tx = await store.joinTx(app);
 * await tx.enqueueTx("mail", {}, { to: "a@example.org" });
 * app.exec("COMMIT");
 * app.close();
 * ```
 */
export interface JoinedTx<Connection = unknown> {
  /**
   * The driver's own transaction, for the business reads and writes. Not to be kept beyond the
   * transaction, and not to be committed or rolled back by hand.
   */
  readonly connection: Connection;
  /** Stores a job with the commit; its id. */
  enqueueTx<T>(
    queue: Queue<T, unknown>,
    opts: EnqueueOpts,
    payload: NoInfer<T>,
  ): Promise<number>;
  /** Stores a job of a queue by name, with the default stamp; its id. */
  enqueueTx<T>(queue: string, opts: EnqueueOpts, payload: T & Payload<T>): Promise<number>;
  /** Stores many jobs with the commit; their ids, in the order given. */
  enqueueManyTx<T>(
    queue: Queue<T, unknown>,
    opts: EnqueueOpts,
    payloads: readonly NoInfer<T>[],
  ): Promise<number[]>;
  /** Stores many jobs of a queue by name, with the default stamp; their ids. */
  enqueueManyTx<T>(
    queue: string,
    opts: EnqueueOpts,
    payloads: readonly (T & Payload<T>)[],
  ): Promise<number[]>;
  /** Appends an event with the commit; its offset. */
  publishTx<T>(stream: Stream<T, unknown>, payload: NoInfer<T>): Promise<number>;
  /** Appends an event to a stream by name; its offset. */
  publishTx<T>(stream: string, payload: T & Payload<T>): Promise<number>;
  /** Appends an event that carries a key with the commit; its offset. */
  publishWithKeyTx<T>(
    stream: Stream<T, unknown>,
    key: string,
    payload: NoInfer<T>,
  ): Promise<number>;
  /** Appends an event that carries a key to a stream by name; its offset. */
  publishWithKeyTx<T>(stream: string, key: string, payload: T & Payload<T>): Promise<number>;
  /** Appends events with the commit; their offsets, in the order given. */
  publishManyTx<T>(
    stream: Stream<T, unknown>,
    events: readonly EventInput<NoInfer<T>>[],
  ): Promise<number[]>;
  /** Appends events to a stream by name; their offsets. */
  publishManyTx<T>(
    stream: string,
    events: readonly EventInput<T & Payload<T>>[],
  ): Promise<number[]>;
  /** Wakes a channel with the commit; a rolled-back one wakes nobody. */
  notifyTx(channel: string, payload?: Json): Promise<void>;
  /**
   * Moves a consumer forward with the commit; whether it moved. With `from`, an offset that did not
   * land loses the transaction.
   */
  saveOffsetTx(
    stream: string | Stream<never, unknown>,
    consumer: string,
    offset: number,
    options?: SaveOffsetOptions,
  ): Promise<boolean>;
  /**
   * Stores a job of an outbox with the commit; its id (ADR-014). Takes the outbox or its name: there
   * is no other way into its backing queue.
   */
  outboxEnqueueTx<T>(
    outbox: Outbox<T, unknown>,
    opts: EnqueueOpts,
    payload: NoInfer<T>,
  ): Promise<number>;
  /** Stores a job of an outbox by name; its id. */
  outboxEnqueueTx<T>(outbox: string, opts: EnqueueOpts, payload: T & Payload<T>): Promise<number>;
  /** Finishes a claimed job with the commit; false when the claim was lost. */
  ackTx(job: Job<unknown>, options?: LostOptions): Promise<boolean>;
  /** Gives a claimed job its next attempt with the commit; false when the claim was lost. */
  retryTx(job: Job<unknown>, options?: RetryOptions & LostOptions): Promise<boolean>;
  /** Sends a claimed job to the dead with the commit; false when the claim was lost. */
  failTx(job: Job<unknown>, error?: unknown, options?: LostOptions): Promise<boolean>;
  /** Deletes a job that is not dead with the commit; false when there is none. */
  cancelTx(queue: string | Queue<never, unknown>, id: number): Promise<boolean>;
  /**
   * Holds a lock to the commit: true when it is still ours and unexpired. A lapsed one is a
   * `ClosedError` that loses the transaction, or false with `ifLost: "ignore"`.
   */
  assertLockTx(lock: Lock, options?: LostOptions): Promise<boolean>;
}

/**
 * A transaction the caller holds. After `commit()`, also a failed one, or `rollback()` every call
 * rejects with `ClosedError`. Leaving an `await using` block without a commit rolls back.
 *
 * There are no claims and no locks in it, and the store's reads see committed rows only.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * await using tx = await store.beginTx();
 * tx.connection.prepare("CREATE TABLE orders (id TEXT PRIMARY KEY)").run();
 * tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run("o-1");
 * await tx.enqueueTx("mail", {}, { to: "a@example.org" });
 * await tx.commit();
 * ```
 */
export interface TxHandle<Connection = unknown> extends JoinedTx<Connection>, AsyncDisposable {
  /**
   * Commits. Rejects when nothing was committed (the transaction is rolled back), or with a
   * `DatabaseError` of outcome `"unknown"` when that cannot be known.
   */
  commit(): Promise<void>;
  /** Rolls back. */
  rollback(): Promise<void>;
}
