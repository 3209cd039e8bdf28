import type { DeadReason, JobRow, JobState } from "./engine.ts";
import type { Json } from "./json.ts";
import { decodeBackoff } from "./retry.ts";
import { decodePayloadNow, type SchemaOutput, type StandardSchema } from "./schema.ts";

/**
 * How a failed attempt is given back.
 *
 * @example
 * ```ts
 * import type { RetryOptions } from "@alkstore/alkstore";
 *
 * const soon: RetryOptions = { delay: 1_000, error: new Error("mail server is busy") };
 * console.log(soon.delay);
 * ```
 */
export interface RetryOptions {
  /** Milliseconds until the next attempt. @default the curve stamped on the job */
  readonly delay?: number;
  /** What went wrong; its text is kept with the job, at most 8 KiB. */
  readonly error?: unknown;
}

/**
 * A claimed job. Its calls present the token of this claim: once the claim has lapsed or was taken,
 * each of them returns false and changes nothing, even when the same worker claimed the job again.
 *
 * A job has no dispose: an implicit ack on a thrown error would lose work.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.queue<{ to: string }>("mail");
 * await mail.enqueue({ to: "a@example.org" });
 * const job = await mail.claimOne("worker-1");
 * if (job !== undefined) {
 *   console.log(job.payload.to);
 *   await job.ack();
 * }
 * ```
 */
export interface Job<T = Json> {
  /** The job's id, as `enqueue` gave it. */
  readonly id: number;
  /** The name of its queue. */
  readonly queue: string;
  /** Who claimed it. */
  readonly worker: string;
  /**
   * The payload, through the queue's schema where there is one. Decoded when it is first read: throws
   * `CodecError` when it cannot be, and the job can still be failed.
   */
  readonly payload: T;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** How many attempts the job has. */
  readonly maxAttempts: number;
  /** Whether a `retry` of this attempt sends the job to the dead. */
  readonly lastAttempt: boolean;
  /** High first. */
  readonly priority: number;
  /** When it was due. */
  readonly runAt: Date;
  /** When it was enqueued. */
  readonly createdAt: Date;
  /** When it may no longer be started, if ever. */
  readonly expiresAt: Date | undefined;
  /** The text of the last failed attempt. */
  readonly lastError: string | undefined;
  /**
   * Aborts with a {@linkcode JobAbortError} when the claim ends without a call of yours: the lease
   * lapsed (also by this process's own clock, before the job can run elsewhere), the job was
   * cancelled, or the worker shuts down.
   */
  readonly signal: AbortSignal;
  /** Finishes the job: it is deleted. False when the claim is no longer held. */
  ack(): Promise<boolean>;
  /**
   * Ends the attempt; the job runs again after `delay`, by default on the curve stamped on it. With
   * `lastAttempt` it goes to the dead (`exhausted`), past its expiry too (`expired`), which also
   * returns true. False when the claim is no longer held.
   */
  retry(options?: RetryOptions): Promise<boolean>;
  /** Sends the job to the dead (`failed`). False when the claim is no longer held. */
  fail(error?: unknown): Promise<boolean>;
  /**
   * Extends the claim to `extend` milliseconds from now, by default the job's visibility. Never
   * shortens it. False when the claim is no longer held: stop working.
   */
  heartbeat(extend?: number): Promise<boolean>;
  /** Gives the job back to its place without spending the attempt. False as above. */
  release(): Promise<boolean>;
  /** The payload as a type you vouch for. Throws `CodecError` when it is not JSON. */
  payloadAs<U = T>(): U;
  /** The payload through a Standard Schema validator. Throws `CodecError` when it does not fit. */
  payloadAs<S extends StandardSchema>(schema: S): SchemaOutput<S>;
}

/**
 * A job as it stood when it was read.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { JobSnapshot } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.queue<string>("mail");
 * const job: JobSnapshot<string> | undefined = await mail.getJob(await mail.enqueue("hello"));
 * console.log(job?.state); // "ready"
 * ```
 */
export interface JobSnapshot<T = Json> {
  /** The job's id. */
  readonly id: number;
  /** The name of its queue. */
  readonly queue: string;
  /** Where it stands at the moment of the read, also when no sweep has moved it there yet. */
  readonly state: JobState;
  /** The payload. Decoded when it is first read: throws `CodecError` when it cannot be. */
  readonly payload: T;
  /** High first. */
  readonly priority: number;
  /** When it is or was due. */
  readonly runAt: Date;
  /** When it was enqueued. */
  readonly createdAt: Date;
  /** When it may no longer be started, if ever. */
  readonly expiresAt: Date | undefined;
  /** How many attempts were begun. */
  readonly attempts: number;
  /** The stamped attempts budget. */
  readonly maxAttempts: number;
  /** The stamped lease, in milliseconds. */
  readonly visibility: number;
  /** The stamped curve of its retries. */
  readonly backoff: {
    /** The shape of the curve. */
    readonly kind: "exponential" | "linear" | "constant";
    /** Milliseconds after the first failed attempt. */
    readonly base: number;
    /** The longest delay, in milliseconds. */
    readonly cap: number;
    /** The share of the delay that is random. */
    readonly jitter: number;
  };
  /** Who holds or last held it. */
  readonly worker: string | undefined;
  /** When the claim lapses; of a claimed job only. */
  readonly leaseUntil: Date | undefined;
  /** The text of the last failed attempt. */
  readonly lastError: string | undefined;
  /** Why it is dead; of a dead job only. */
  readonly reason: DeadReason | undefined;
  /** When it died; of a dead job only, and only once it was moved there. */
  readonly diedAt: Date | undefined;
}

/** Where a job stands at `now`: a lapsed claim, a due or an expired job is no longer what is stored. */
export function stateAt(row: JobRow, now: number): { state: JobState; reason?: DeadReason } {
  if (row.state === "dead") return { state: "dead", ...(row.reason && { reason: row.reason }) };
  const isHeld = row.state === "claimed" && (row.leaseUntil ?? 0) > now;
  if (isHeld) return { state: "claimed" };
  if (row.expiresAt !== undefined && row.expiresAt <= now) {
    return { state: "dead", reason: "expired" };
  }
  if (row.state === "claimed" && row.attempts >= row.maxAttempts) {
    return { state: "dead", reason: "exhausted" };
  }
  return { state: row.state === "scheduled" && row.runAt > now ? "scheduled" : "ready" };
}

/** A row as the caller sees it. */
export function snapshotOf<T>(
  row: JobRow,
  now: number,
  schema: StandardSchema | undefined,
  name: string,
): JobSnapshot<T> {
  const { state, reason } = stateAt(row, now);
  return {
    id: row.id,
    queue: name,
    state,
    get payload(): T {
      return decodePayloadNow(schema, row.payload, `Cannot read job ${row.id}`) as T;
    },
    priority: row.priority,
    runAt: new Date(row.runAt),
    createdAt: new Date(row.createdAt),
    expiresAt: row.expiresAt === undefined ? undefined : new Date(row.expiresAt),
    attempts: row.attempts,
    maxAttempts: row.maxAttempts,
    visibility: row.visibility,
    backoff: decodeBackoff(row.backoff),
    worker: row.worker,
    leaseUntil: state === "claimed" && row.leaseUntil !== undefined
      ? new Date(row.leaseUntil)
      : undefined,
    lastError: row.lastError,
    reason,
    diedAt: row.diedAt === undefined ? undefined : new Date(row.diedAt),
  };
}
