/**
 * Transactional messaging in the database an application already has: wakes, streams, queues, locks
 * and an outbox, behind one contract with several engines. A business write and its message commit
 * together or not at all.
 *
 * This module is the contract: the types application code depends on, and the errors. It loads no
 * driver. A store is made by exactly one engine, for example by `openSqlite` of
 * `@alkstore/alkstore/sqlite`.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const mail = store.outbox<{ to: string }>("mail");
 *
 * await store.transaction(async (tx) => {
 *   tx.connection.prepare("CREATE TABLE orders (id TEXT PRIMARY KEY)").run();
 *   tx.connection.prepare("INSERT INTO orders (id) VALUES (?)").run("o-1");
 *   await tx.outboxEnqueueTx(mail, {}, { to: "a@example.org" });
 * });
 *
 * await mail.runOnce("mailer", (message) => console.log(`mail to ${message.to}`));
 * ```
 *
 * @module
 */

export { JobAbortError } from "./core/claims.ts";
export type { DeadReason, JobState } from "./core/engine.ts";
export {
  AlkstoreError,
  ClosedError,
  CodecError,
  DatabaseError,
  type DatabaseErrorOptions,
  type DatabaseOutcome,
  type ErrorCode,
  InvalidNameError,
  PayloadTooLargeError,
  ReservedNameError,
} from "./core/errors.ts";
export type { StoreEvent } from "./core/events.ts";
export type { Job, JobSnapshot, RetryOptions } from "./core/job.ts";
export type { Json } from "./core/json.ts";
export type { Lock } from "./core/lock.ts";
export { Reserved } from "./core/names.ts";
export type { WaitOptions } from "./core/options.ts";
export type { DeliveryContext, Outbox, OutboxOpts, RunOptions } from "./core/outbox.ts";
export type { Payload } from "./core/payload.ts";
export type {
  DeadJobsOptions,
  EnqueueOpts,
  PurgeOptions,
  Queue,
  QueueOpts,
  QueueStats,
} from "./core/queue.ts";
export type { Backoff } from "./core/retry.ts";
export type {
  SchemaInput,
  SchemaIssue,
  SchemaOutput,
  SchemaResult,
  StandardSchema,
} from "./core/schema.ts";
export type { CloseOptions, Store, StoreStatus } from "./core/store.ts";
export type {
  EventInput,
  EventReceiver,
  MissedEvents,
  ProcessOptions,
  Stream,
  StreamEvent,
  StreamInfo,
  StreamOpts,
} from "./core/stream.ts";
export type {
  JoinedTx,
  LostOptions,
  SaveOffsetOptions,
  TransactionOptions,
  TxHandle,
  TxOptions,
} from "./core/tx.ts";
export type { Wake, WakeReceiver } from "./core/wake.ts";
export type { StopOptions, WorkerHandle, WorkOptions } from "./core/worker.ts";
