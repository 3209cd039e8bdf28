import type { JobSnapshot } from "./job.ts";
import type { Json } from "./json.ts";
import type { DeadJobsOptions, EnqueueOpts, PurgeOptions, QueueStats } from "./queue.ts";
import type { StandardSchema } from "./schema.ts";
import type { WorkerHandle } from "./worker.ts";

/**
 * Settings of an outbox handle. Visibility (60 s), attempts (5) and backoff (5 s, doubling, no jitter)
 * are the same for every outbox (ADR-014 §1).
 *
 * @example
 * ```ts
 * import type { OutboxOpts } from "@alkstore/alkstore";
 *
 * const plain: OutboxOpts = {};
 * console.log(plain);
 * ```
 */
export interface OutboxOpts {
  /** Checks payloads on the way in and converts them on the way out. Not stored. */
  readonly schema?: StandardSchema;
}

/**
 * What a delivery is told beside the payload.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { DeliveryContext } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.outbox<{ to: string }>("mail");
 * await mail.enqueue({ to: "a@example.org" });
 * await mail.runOnce("mailer", (payload, context: DeliveryContext) => {
 *   console.log(`message ${context.id} to ${payload.to}, attempt ${context.attempt}`);
 * });
 * ```
 */
export interface DeliveryContext {
  /** The job's id: the same for every attempt, so it can serve as an idempotency key. */
  readonly id: number;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** Whether a failure sends the message to the dead. */
  readonly lastAttempt: boolean;
  /** Aborts with a `JobAbortError` when the claim ends while the delivery runs. */
  readonly signal: AbortSignal;
}

/**
 * How an outbox is run.
 *
 * @example
 * ```ts
 * import type { RunOptions } from "@alkstore/alkstore";
 *
 * const four: RunOptions = { concurrency: 4, worker: "mailer" };
 * console.log(four);
 * ```
 */
export interface RunOptions {
  /** How many deliveries run at once. @default {1} */
  readonly concurrency?: number;
  /** The name claims are made under. @default a name unique to the call */
  readonly worker?: string;
  /** Stops the loop when aborted. */
  readonly signal?: AbortSignal;
}

/**
 * Messages to the outside world that commit with the business write: `tx.outboxEnqueueTx` (ADR-014),
 * or `enqueue` alone. Delivered at least once, in no particular order across retries and workers.
 *
 * The jobs live in a queue of their own that only the outbox reaches.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.outbox<{ to: string }>("mail");
 * await store.transaction(async (tx) => {
 *   await tx.outboxEnqueueTx(mail, {}, { to: "a@example.org" });
 * });
 * await mail.runOnce("mailer", (payload) => console.log(`to ${payload.to}`));
 * ```
 */
export interface Outbox<Input = Json, Output = Input> {
  /** The outbox's name. */
  readonly name: string;
  /** Stores a message by itself; its id. Use `tx.outboxEnqueueTx` to commit it with a business write. */
  enqueue(payload: Input, opts?: EnqueueOpts): Promise<number>;
  /**
   * Delivers one message, if there is one: whether there was. A delivery that throws is retried on
   * the stamped curve, its error is kept. The claim is extended while it runs; when it was lost all
   * the same, that is still true and reported to `onEvent`. Rejects with `DatabaseError` only.
   */
  runOnce(
    worker: string,
    deliver: (payload: Output, context: DeliveryContext) => unknown,
  ): Promise<boolean>;
  /** Delivers messages until stopped: `runOnce` as a loop that sleeps until there is work. */
  run(
    deliver: (payload: Output, context: DeliveryContext) => unknown,
    options?: RunOptions,
  ): WorkerHandle;
  /** A message as it stands; nothing when it is delivered, cancelled, purged or of another outbox. */
  getJob(id: number): Promise<JobSnapshot<Output> | undefined>;
  /** Deletes a message that is neither delivered nor dead. */
  cancel(id: number): Promise<boolean>;
  /** How many messages stand where. */
  stats(): Promise<QueueStats>;
  /** Messages that used up their attempts, by id, oldest first. */
  deadJobs(options?: DeadJobsOptions): Promise<JobSnapshot<Output>[]>;
  /** Makes a dead message deliverable again, with all its attempts. False when it is not dead. */
  requeue(id: number): Promise<boolean>;
  /** Deletes dead messages, in steps; how many. */
  purgeDead(options?: PurgeOptions): Promise<number>;
  /** Moves lapsed claims and expired messages to where they belong; how many. */
  sweepExpired(): Promise<number>;
}
