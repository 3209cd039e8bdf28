/**
 * The seam between the contract and a database.
 *
 * The core validates names, encodes payloads, stamps options and words the errors of the contract;
 * an engine stores rows and tells when something moved. Each operation exists once per engine and
 * works in and out of a transaction: a {@linkcode Session} is what both have in common, a
 * {@linkcode RootSession} commits each call by itself, a {@linkcode TxSession} with its transaction.
 *
 * Rules for an engine:
 * - "Now" is read once per call: the host's clock on an embedded database, the server's elsewhere.
 * - Every failure is a `DatabaseError` with the driver's error in `cause`; nothing else is thrown,
 *   and a lost race is a value.
 * - A call that resolves is committed (root) or part of its transaction (tx).
 */

/** What a wake can be about. */
export type TopicKind =
  /** A consumer channel of `notify`/`listen`. */
  | "channel"
  /** Events of a stream became visible. */
  | "stream"
  /** Jobs of a queue may have become claimable, or have a new run time. */
  | "queue"
  /** Claims of a queue were taken from their holders by `cancel`. */
  | "claims"
  /** Run times or lease ends of some queue may have moved; one topic, with an empty name. */
  | "deadlines";

/** A wake topic: the kind and the name. */
export type Topic = `${TopicKind}:${string}`;

/** What a subscriber of a topic is told. */
export interface WakeListener {
  /** Something may have moved. `reconnected`: notifications may have been lost before this one. */
  wake(reconnected: boolean): void;
  /** The source died for good; no call follows. */
  end(cause: Error): void;
}

/**
 * Tells when topics move, across processes. The safety poll behind lost notifications is the
 * engine's own: where it polls, it wakes as if it had been told.
 */
export interface WakeSource {
  /**
   * Calls `listener` whenever `topic` moves, until the returned function is called.
   * Resolves when armed: nothing committed after that is missed. Rejects on a dead source.
   */
  watch(topic: Topic, listener: WakeListener): Promise<() => void>;
}

/**
 * Where a job stands, as stored. The core derives what holds at the moment of a read.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { JobState } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.queue<string>("mail");
 * const id = await mail.enqueue("hello", { delay: 60_000 });
 * const state: JobState | undefined = (await mail.getJob(id))?.state;
 * console.log(state); // "scheduled"
 * ```
 */
export type JobState = "ready" | "scheduled" | "claimed" | "dead";

/**
 * Why a job is dead.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { DeadReason } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.queue<string>("mail");
 * await mail.enqueue("hello");
 * await (await mail.claimOne("worker-1"))?.fail(new Error("no such mailbox"));
 * const reasons: (DeadReason | undefined)[] = (await mail.deadJobs()).map((job) => job.reason);
 * console.log(reasons); // ["failed"]
 * ```
 */
export type DeadReason = "failed" | "exhausted" | "expired";

/** What is stamped on jobs when they are enqueued. Durations are milliseconds. */
export interface JobStamp {
  /** High first. */
  readonly priority: number;
  /** From the engine's now; 0 is ready at once. */
  readonly delay: number;
  /** Unix milliseconds; instead of `delay`. */
  readonly runAt: number | undefined;
  /** How often it may be claimed. */
  readonly maxAttempts: number;
  /** How long a claim lasts. */
  readonly visibility: number;
  /** Made by `encodeBackoff`, opaque to the engine. */
  readonly backoff: string;
  /** From the engine's now: it may not be started later. */
  readonly expires: number | undefined;
}

/** A job as stored. Instants are Unix milliseconds. */
export interface JobRow {
  readonly id: number;
  readonly queue: string;
  readonly state: JobState;
  readonly payload: string;
  readonly priority: number;
  readonly runAt: number;
  readonly createdAt: number;
  readonly expiresAt: number | undefined;
  /** How often it was claimed, less the claims that were released. */
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly visibility: number;
  readonly backoff: string;
  /** The token of the latest claim; strictly increases per job. */
  readonly claim: number;
  /** Who holds, or last held, the claim. */
  readonly worker: string | undefined;
  /** When the claim lapses; of a claimed job only. */
  readonly leaseUntil: number | undefined;
  readonly lastError: string | undefined;
  /** Of a dead job only. */
  readonly reason: DeadReason | undefined;
  /** Of a dead job only. */
  readonly diedAt: number | undefined;
}

/** Rows, and the engine's now at which they were read. */
export interface Reading<T> {
  readonly now: number;
  readonly rows: T[];
}

/** One claim of one job: what every call of a holder presents. */
export interface ClaimRef {
  readonly id: number;
  readonly claim: number;
}

/** How a holder's call ended: the state the job went to, or that the claim was no longer held. */
export type Landing = JobState | "lost";

/** How many jobs of a queue stand where, derived at the read. */
export interface QueueCounts {
  readonly ready: number;
  readonly scheduled: number;
  readonly claimed: number;
  readonly dead: number;
  /** Run time of the ready job that waits longest, Unix milliseconds. */
  readonly oldestReady: number | undefined;
}

/** What a waiter of a queue must know. */
export interface QueuePending {
  readonly queue: string;
  /** Whether a claim would find a job now. */
  readonly claimable: boolean;
  /** Milliseconds from the engine's now to the next run time, lease end or expiry. */
  readonly nextIn: number | undefined;
}

/** An event to store. */
export interface NewEvent {
  readonly key: string | undefined;
  /** JSON text. */
  readonly payload: string;
}

/** An event as stored. */
export interface EventRow {
  readonly offset: number;
  readonly key: string | undefined;
  readonly payload: string;
  readonly createdAt: number;
}

/** A page of a stream. */
export interface EventPage {
  readonly events: EventRow[];
  /** The highest offset that was ever trimmed away, 0 when none was. */
  readonly floor: number;
}

/** How `saveOffset` ended: above the highest offset ever drawn it is `"beyond"`. */
export type OffsetSaving = "advanced" | "kept" | "beyond";

/** A stream at a glance. */
export interface StreamFacts {
  /** The highest offset ever drawn, 0 when none was. */
  readonly head: number;
  /** The lowest offset that can still be read. */
  readonly first: number | undefined;
  readonly consumers: { readonly name: string; readonly offset: number; readonly lag: number }[];
}

/** A lock that was taken or renewed. */
export interface LockGrant {
  /** Strictly increases per name. */
  readonly token: number;
  /** Unix milliseconds by the engine's clock. */
  readonly expiresAt: number;
}

/** Operations that exist in and out of a transaction. */
export interface Session {
  /** Wakes a channel when committed. `payload` is JSON text. */
  notify(channel: string, payload: string | undefined): Promise<void>;
  /** Appends events; their offsets, ascending. */
  publish(stream: string, events: readonly NewEvent[]): Promise<number[]>;
  /** Moves a consumer forward; with `from` only when that is what is stored (0 for none). */
  saveOffset(
    stream: string,
    consumer: string,
    offset: number,
    from: number | undefined,
  ): Promise<OffsetSaving>;
  /** Stores jobs, one per payload (JSON text); their ids, ascending. */
  enqueue(queue: string, stamp: JobStamp, payloads: readonly string[]): Promise<number[]>;
  /** Deletes jobs whose claims are live; the ids that landed. All or none of a failed call. */
  ack(queue: string, claims: readonly ClaimRef[]): Promise<number[]>;
  /** Ends an attempt; the job runs again after `delay`, or is dead when its budget is spent. */
  retry(queue: string, claim: ClaimRef, delay: number, error: string | undefined): Promise<Landing>;
  /** Ends the job: dead, `failed`. */
  fail(queue: string, claim: ClaimRef, error: string | undefined): Promise<Landing>;
  /** Deletes a job that is not dead, whoever holds it. */
  cancel(queue: string, id: number): Promise<boolean>;
}

/** Operations that commit by themselves, and reads, which see committed rows only. */
export interface RootSession extends Session {
  /** The events above `after`, ascending. */
  readEvents(stream: string, after: number, limit: number): Promise<EventPage>;
  /** The offset a consumer has saved, 0 when none. */
  savedOffset(stream: string, consumer: string): Promise<number>;
  /** Sets a consumer's offset, in either direction. */
  resetOffset(stream: string, consumer: string, offset: number): Promise<OffsetSaving>;
  /** Forgets a consumer; whether there was one. */
  dropConsumer(stream: string, consumer: string): Promise<boolean>;
  /** Deletes at most `limit` events up to and including `offset`, ascending; how many. */
  trim(stream: string, offset: number, limit: number): Promise<number>;
  /** Head, first offset and consumers of a stream. */
  streamFacts(stream: string): Promise<StreamFacts>;

  /** Takes up to `limit` jobs in claim order. A call that finds none has written nothing. */
  claim(queue: string, worker: string, limit: number): Promise<JobRow[]>;
  /** Extends live claims to `now + extend`, never shortens; the ids that landed. */
  heartbeat(
    queue: string,
    claims: readonly (ClaimRef & { readonly extend: number })[],
  ): Promise<number[]>;
  /** Gives claims back without spending the attempts; one landing per claim. */
  release(queue: string, claims: readonly ClaimRef[]): Promise<Landing[]>;
  /** One job of the queue. */
  job(queue: string, id: number): Promise<Reading<JobRow>>;
  /** Dead jobs with a greater id, ascending. */
  deadJobs(queue: string, after: number, limit: number): Promise<Reading<JobRow>>;
  /** Counts by effective state. */
  counts(queue: string): Promise<QueueCounts>;
  /** One answer for all waiting queues: who has work, and when is the next deadline. */
  pending(queues: readonly string[]): Promise<QueuePending[]>;
  /** Makes a dead job ready again with a fresh budget; false when it is not a dead job here. */
  requeue(queue: string, id: number): Promise<boolean>;
  /** Deletes at most `limit` dead jobs that died `age` milliseconds ago or earlier; how many. */
  purgeDead(queue: string, age: number, limit: number): Promise<number>;
  /**
   * Moves at most `limit` lapsed claims and expired jobs, of one queue or of all, to where they
   * belong; how many. Repeats its whole predicate when it writes.
   */
  sweep(queue: string | undefined, limit: number): Promise<number>;
  /** Engine housekeeping beyond sweeping, in a bounded step. */
  maintain(): Promise<void>;

  /** Takes a free or lapsed lock. */
  tryLock(name: string, owner: string, ttl: number): Promise<LockGrant | undefined>;
  /** Extends a live lock of this token. */
  renewLock(name: string, token: number, ttl: number): Promise<LockGrant | undefined>;
  /** Frees the lock of this token, lapsed or not; false when another holds it. */
  releaseLock(name: string, token: number): Promise<boolean>;
}

/** One transaction. After any `DatabaseError` the core rolls it back and uses it no more. */
export interface TxSession<Connection> extends Session {
  /** The driver's own transaction, for the business reads and writes. */
  readonly connection: Connection;
  /** Whether the lock is held, unexpired, by this token; if so, it is to the commit. */
  assertLock(name: string, token: number): Promise<boolean>;
  /** Commits. Rejects when nothing or nothing certain was committed. */
  commit(): Promise<void>;
  /** Rolls back; resolves even when the transaction is gone already. */
  rollback(): Promise<void>;
}

/** A transaction the caller opened and will end. Rejects with `ClosedError` once it has ended. */
export type JoinedSession<Connection> = Omit<TxSession<Connection>, "commit" | "rollback">;

/** How a transaction is begun. */
export interface BeginOptions {
  /** Where it was opened, for the message of whoever waits for it. */
  readonly label: () => string;
  /** Ends the wait for a turn. */
  readonly signal: AbortSignal | undefined;
}

/** What an engine knows of itself: for people and logs, not for code. */
export interface EngineStatus {
  readonly engine: string;
  readonly driver: string;
  readonly schemaVersion: number;
  readonly wake: "push" | "poll";
  /** Why wakes are polled for, or what degraded them. */
  readonly wakeReason: string | undefined;
  readonly healthy: boolean;
  /** Facts only this engine has: WAL size, oldest snapshot, queue use. */
  readonly details: Readonly<Record<string, string | number | boolean | undefined>>;
}

/** What an engine reports without being asked. */
export type EngineEvent =
  | { readonly type: "degraded"; readonly reason: string; readonly cause?: unknown }
  | { readonly type: "recovered"; readonly reason: string }
  | { readonly type: "error"; readonly error: Error };

/** A database behind the contract. */
export interface Engine<Connection> {
  /** The largest `notify` payload in bytes of UTF-8, where there is a limit. */
  readonly notifyLimit: number | undefined;
  /** Calls that commit by themselves, and reads. */
  readonly session: RootSession;
  /** Wakes across processes. */
  readonly wakes: WakeSource;
  /** Receives what happens in the background; set once by the store. */
  onEvent: (event: EngineEvent) => void;
  /** Waits for a turn and begins a transaction. */
  begin(options: BeginOptions): Promise<TxSession<Connection>>;
  /** Joins the caller's open transaction. `TypeError` for a connection that is none of its own. */
  join(connection: Connection): Promise<JoinedSession<Connection>>;
  /** Diagnostics. */
  status(): Promise<EngineStatus>;
  /** Ends everything, in bounded time, with the database gone too. */
  close(): Promise<void>;
}
