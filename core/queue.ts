import type { Job, JobSnapshot } from "./job.ts";
import type { Json } from "./json.ts";
import type { Backoff } from "./retry.ts";
import type { StandardSchema } from "./schema.ts";
import type { WorkerHandle, WorkOptions } from "./worker.ts";
import type { JoinedTx } from "./tx.ts";

/**
 * Settings of a queue handle: the defaults of the jobs enqueued through it. They are stamped on each
 * job, so recovery never needs them again; the settings of the handle that claims are not looked at.
 *
 * @example
 * ```ts
 * import type { QueueOpts } from "@alkstore/alkstore";
 *
 * const slow: QueueOpts = { visibility: 300_000, maxAttempts: 10, backoff: { base: 30_000 } };
 * console.log(slow);
 * ```
 */
export interface QueueOpts {
  /** Milliseconds until a claim lapses unless it is extended. @default {60_000} */
  readonly visibility?: number;
  /** How often a job may be started before it is dead. @default {5} */
  readonly maxAttempts?: number;
  /** The delays between attempts; a number is the base in milliseconds. @default 5 s, doubling */
  readonly backoff?: Backoff | number;
  /** Checks payloads on the way in and converts them on the way out. Not stored. */
  readonly schema?: StandardSchema;
}

/**
 * Settings of one enqueue (ADR-008 §1). `delay` and `runAt` exclude each other.
 *
 * @example
 * ```ts
 * import type { EnqueueOpts } from "@alkstore/alkstore";
 *
 * const tomorrow: EnqueueOpts = { runAt: new Date(Date.now() + 86_400_000), priority: 10 };
 * console.log(tomorrow);
 * ```
 */
export interface EnqueueOpts {
  /** Milliseconds until the job is ready. @default {0} */
  readonly delay?: number;
  /** When the job is ready, instead of `delay`. */
  readonly runAt?: Date;
  /** High first; a 32-bit integer. @default {0} */
  readonly priority?: number;
  /** How often the job may be started, instead of the queue's. */
  readonly maxAttempts?: number;
  /** Milliseconds from now after which the job may no longer be started: it goes to the dead. */
  readonly expires?: number;
}

/**
 * A page of dead jobs.
 *
 * @example
 * ```ts
 * import type { DeadJobsOptions } from "@alkstore/alkstore";
 *
 * const next: DeadJobsOptions = { after: 100, limit: 50 };
 * console.log(next);
 * ```
 */
export interface DeadJobsOptions {
  /** The id after which the page begins. @default {0} */
  readonly after?: number;
  /** How many jobs at most. @default {100} */
  readonly limit?: number;
}

/**
 * Which dead jobs to delete.
 *
 * @example
 * ```ts
 * import type { PurgeOptions } from "@alkstore/alkstore";
 *
 * const aWeek: PurgeOptions = { age: 7 * 86_400_000 };
 * console.log(aWeek);
 * ```
 */
export interface PurgeOptions {
  /** Only jobs that died at least this many milliseconds ago. @default {0} */
  readonly age?: number;
}

/**
 * How many jobs of a queue stand where at the moment of the read.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { QueueStats } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * const stats: QueueStats = await store.queue("mail").stats();
 * console.log(stats.ready, stats.dead);
 * ```
 */
export interface QueueStats {
  /** Could be claimed now. */
  readonly ready: number;
  /** Have a run time ahead. */
  readonly scheduled: number;
  /** Are held by a live claim. */
  readonly claimed: number;
  /** Are dead, or would be once swept. */
  readonly dead: number;
  /** Run time of the ready job that waits longest. */
  readonly oldestReadyAt: Date | undefined;
}

/**
 * A queue of jobs: delivered at least once, highest priority first, then by run time, then by id.
 *
 * `Input` is what is enqueued, `Output` what a handler gets; they differ where a schema transforms.
 * `Connection` is the driver's connection in the transaction of a handler.
 * Queues are names: first use works, nothing is to be created.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.queue<{ to: string }>("mail");
 * await mail.enqueue({ to: "a@example.org" });
 *
 * const done = Promise.withResolvers<string>();
 * const worker = mail.work((job) => done.resolve(job.payload.to));
 * console.log(await done.promise);
 * await worker.stop();
 * ```
 */
export interface Queue<Input = Json, Output = Input, Connection = unknown> {
  /** The queue's name. */
  readonly name: string;
  /**
   * Stores a job and resolves with its id once that is committed. Rejects with `CodecError` for a
   * payload that is not JSON or does not fit the schema, and with `TypeError` or `RangeError` for bad
   * options, before anything is written.
   */
  enqueue(payload: Input, opts?: EnqueueOpts): Promise<number>;
  /** Stores many jobs with the same options, all or none; their ids, in the order given. */
  enqueueMany(payloads: readonly Input[], opts?: EnqueueOpts): Promise<number[]>;
  /**
   * Takes the next ready job, or nothing. `worker` is a name for people: it may be shared, ownership
   * goes by the claim's token.
   */
  claimOne(worker: string): Promise<Job<Output> | undefined>;
  /** Takes up to `limit` jobs, in the order of the queue. */
  claimBatch(worker: string, limit: number): Promise<Job<Output>[]>;
  /** Finishes jobs in one transaction; the ids of those whose claims were still held. */
  ackBatch(jobs: readonly Job<Output>[]): Promise<number[]>;
  /**
   * Deletes a ready, scheduled or claimed job of this queue. A holder's signal aborts, its later
   * calls return false. False for a dead, finished or unknown job.
   */
  cancel(id: number): Promise<boolean>;
  /** The job as it stands; nothing when it is finished, cancelled, purged or of another queue. */
  getJob(id: number): Promise<JobSnapshot<Output> | undefined>;
  /**
   * Moves lapsed claims and expired jobs to where they belong; how many. Claims do that for
   * themselves and the store sweeps in the background: call it when you want to be sure now.
   */
  sweepExpired(): Promise<number>;
  /**
   * Works the queue with a transaction per job: the handler's writes on `tx` and the ack commit
   * together; when the claim was lost meanwhile, they are rolled back.
   */
  work(
    handler: (job: Job<Output>, tx: JoinedTx<Connection>) => unknown,
    options: WorkOptions & { readonly tx: true },
  ): WorkerHandle;
  /**
   * Works the queue until stopped: sleeps until there is work, runs `handler` for each job, acks when
   * it resolves, retries when it throws, and extends the claims meanwhile. Nothing is done for a job
   * the handler finished itself. Outages are ridden out and reported to `onEvent`.
   *
   * A job's visibility, attempts and backoff are those it was enqueued with: the settings of this
   * handle are NOT applied to jobs enqueued elsewhere.
   */
  work(handler: (job: Job<Output>) => unknown, options?: WorkOptions): WorkerHandle;
  /** How many jobs stand where. Counts: costs as much as there are jobs. */
  stats(): Promise<QueueStats>;
  /** Dead jobs by id, oldest first. */
  deadJobs(options?: DeadJobsOptions): Promise<JobSnapshot<Output>[]>;
  /** Makes a dead job ready again, with all its attempts and no expiry. False when it is not dead. */
  requeue(id: number): Promise<boolean>;
  /** Deletes dead jobs, in steps; how many. */
  purgeDead(options?: PurgeOptions): Promise<number>;
}
