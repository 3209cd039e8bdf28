import type { StoreEvent } from "./events.ts";
import type { Json } from "./json.ts";
import type { Lock } from "./lock.ts";
import type { Outbox, OutboxOpts } from "./outbox.ts";
import type { Payload } from "./payload.ts";
import type { Queue, QueueOpts } from "./queue.ts";
import type { SchemaInput, SchemaOutput, StandardSchema } from "./schema.ts";
import type { Stream, StreamOpts } from "./stream.ts";
import type { JoinedTx, TransactionOptions, TxHandle, TxOptions } from "./tx.ts";
import type { WakeReceiver } from "./wake.ts";

/**
 * How a store is closed.
 *
 * @example
 * ```ts
 * import type { CloseOptions } from "@alkstore/alkstore";
 *
 * const patient: CloseOptions = { drain: 30_000 };
 * console.log(patient);
 * ```
 */
export interface CloseOptions {
  /**
   * How many milliseconds running handlers have to end. After that their signals abort and their jobs
   * are given back without spending the attempt. @default {1_000}
   */
  readonly drain?: number;
}

/**
 * What a store knows of itself: for people and logs. Nothing in it is needed to write correct code.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { StoreStatus } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * const status: StoreStatus = await store.status();
 * console.log(status.engine, status.wake);
 * ```
 */
export interface StoreStatus {
  /** `sqlite` or `postgres`. */
  readonly engine: string;
  /** The driver in use. */
  readonly driver: string;
  /** The version of the tables. */
  readonly schemaVersion: number;
  /** Whether wakes from other processes are told or polled for. */
  readonly wake: "push" | "poll";
  /** Why they are polled for. */
  readonly wakeReason: string | undefined;
  /** Whether the database answered. */
  readonly healthy: boolean;
  /** `open`, `draining` or `closed`. */
  readonly state: "open" | "draining" | "closed";
  /** How many workers and projections run. */
  readonly workers: number;
  /** Transactions that are open, oldest first. */
  readonly transactions: readonly {
    /** When it was opened. */
    readonly openedAt: Date;
    /** The place in the code. */
    readonly origin: string;
  }[];
  /** Facts only this engine has, such as the size of the WAL in bytes. */
  readonly details: Readonly<Record<string, string | number | boolean | undefined>>;
}

/**
 * Transactional messaging in the database the application already has. Made by `openSqlite` or
 * `openPostgres`; code that uses it need not know which.
 *
 * `Connection` is the driver's connection that `tx.connection` gives.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { Store } from "@alkstore/alkstore";
 *
 * async function place(store: Store, id: string): Promise<void> {
 *   await store.transaction(async (tx) => {
 *     await tx.publishTx("orders", { id });
 *     await tx.outboxEnqueueTx("mail", {}, { order: id });
 *   });
 * }
 *
 * await using store = await openSqlite(":memory:");
 * await place(store, "o-1");
 * ```
 */
export interface Store<Connection = unknown> extends AsyncDisposable {
  /**
   * Wakes everybody who listens on the channel, in every process. The payload is for the database's
   * own listeners (`LISTEN` on Postgres, 7,999 bytes at most, else `PayloadTooLargeError`); a `Wake`
   * does not carry it.
   */
  notify(channel: string, payload?: Json): Promise<void>;
  /** Opens a receiver of a channel's wakes; armed when the promise resolves. */
  listen(channel: string): Promise<WakeReceiver>;
  /** A stream whose payloads a Standard Schema checks and converts. */
  stream<S extends StandardSchema>(
    name: string,
    opts: StreamOpts & { readonly schema: S },
  ): Stream<SchemaInput<S>, SchemaOutput<S>, Connection>;
  /** A stream by name; first use works. Throws name errors at once. */
  stream<T = Json>(
    name: string,
    opts?: StreamOpts,
  ): Stream<Payload<NoInfer<T>>, Payload<NoInfer<T>>, Connection>;
  /** A queue whose payloads a Standard Schema checks and converts. */
  queue<S extends StandardSchema>(
    name: string,
    opts: QueueOpts & { readonly schema: S },
  ): Queue<SchemaInput<S>, SchemaOutput<S>, Connection>;
  /** A queue by name; first use works. Throws name and option errors at once. */
  queue<T = Json>(
    name: string,
    opts?: QueueOpts,
  ): Queue<Payload<NoInfer<T>>, Payload<NoInfer<T>>, Connection>;
  /** An outbox whose payloads a Standard Schema checks and converts. */
  outbox<S extends StandardSchema>(
    name: string,
    opts: OutboxOpts & { readonly schema: S },
  ): Outbox<SchemaInput<S>, SchemaOutput<S>>;
  /** An outbox by name; first use works. Throws name errors at once. */
  outbox<T = Json>(name: string, opts?: OutboxOpts): Outbox<Payload<NoInfer<T>>>;
  /**
   * Takes a lock for `ttl` milliseconds, or nothing when it is held. Not re-entrant, for the same
   * owner either. Exclusivity lapses silently when it is not renewed in time.
   */
  tryLock(name: string, owner: string, ttl: number): Promise<Lock | undefined>;
  /**
   * Begins a transaction the caller holds. On SQLite there is one at a time: others, and writes that
   * commit by themselves, wait their turn.
   */
  beginTx(options?: TxOptions): Promise<TxHandle<Connection>>;
  /**
   * Runs `work` in a transaction: commits when it resolves and gives its value, rolls back and
   * rethrows when it throws. A write of this store outside `tx` while it runs is a `TypeError`.
   */
  transaction<T>(
    work: (tx: JoinedTx<Connection>) => Promise<T> | T,
    options?: TransactionOptions,
  ): Promise<T>;
  /**
   * The `*Tx` methods on a transaction the caller opened with its own driver and will end. Rejects
   * with `ClosedError` when none is open on the connection, with `TypeError` for a connection of
   * another library or database. Wakes follow the caller's commit.
   */
  joinTx(connection: Connection): Promise<JoinedTx<Connection>>;
  /** What the store knows of itself. */
  status(): Promise<StoreStatus>;
  /** Claims nothing more; everything else works. Resolves when running handlers have ended. */
  drain(): Promise<void>;
  /**
   * Closes the store: refuses new calls, gives handlers time, rolls back open transactions, ends
   * receivers, and leaves no timer, watcher or connection. Bounded with the database gone, too.
   */
  close(options?: CloseOptions): Promise<void>;
  /** Calls `listener` for what happens, until the returned function is called. */
  onEvent(listener: (event: StoreEvent) => void): () => void;
}
