import type { Context } from "./context.ts";
import type { JobStamp, RootSession } from "./engine.ts";
import { type JobSnapshot, snapshotOf } from "./job.ts";
import { JobHandle } from "./job_handle.ts";
import { checkLabel, describe } from "./names.ts";
import {
  checkCount,
  checkDuration,
  checkFunction,
  checkOffset,
  checkOptions,
  orDefault,
} from "./options.ts";
import type { Job } from "./job.ts";
import type { DeadJobsOptions, EnqueueOpts, PurgeOptions, Queue, QueueStats } from "./queue.ts";
import { encodePayload, encodePayloads, type StandardSchema } from "./schema.ts";
import { jobStamp } from "./stamp.ts";
import type { JoinedTx } from "./tx.ts";
import { Wording } from "./wording.ts";
import { startWorker, type WorkerHandle, type WorkOptions } from "./worker.ts";

/** How many rows one step of a long sweep or purge touches: each step is one transaction. */
const STEP = 1_000;

/** How a queue is worded and reached: an outbox's backing queue is not what the caller named. */
export interface QueueIdentity {
  /** `queue` or `outbox`. */
  readonly kind: string;
  /** What the caller named. */
  readonly name: string;
  /** The key its jobs are stored under. */
  readonly key: string;
  /** The way out when a transaction is open around an enqueue. */
  readonly enqueueInstead: string;
  /** The same around a cancel. */
  readonly cancelInstead: string;
}

/** The {@linkcode Queue} of the caller; also the backing queue of an outbox. */
export class QueueHandle<Input, Output, Connection = unknown>
  implements Queue<Input, Output, Connection> {
  readonly context: Context;
  readonly schema: StandardSchema | undefined;
  readonly stamp: JobStamp;
  readonly key: string;
  readonly #identity: QueueIdentity;
  readonly #wording: Wording;

  /** Made by the store, from checked settings. */
  constructor(
    context: Context,
    identity: QueueIdentity,
    stamp: JobStamp,
    schema: StandardSchema | undefined,
  ) {
    this.context = context;
    this.#identity = identity;
    this.#wording = new Wording(identity.kind, identity.name);
    this.key = identity.key;
    this.stamp = stamp;
    this.schema = schema;
  }

  get name(): string {
    return this.#identity.name;
  }

  async enqueue(payload: Input, opts?: EnqueueOpts): Promise<number> {
    const operation = this.operation("enqueue to");
    const session = this.context.writer(operation, this.#identity.enqueueInstead);
    const stamp = jobStamp(this.stamp, opts, operation);
    const encoded = encodePayload(this.schema, payload, operation);
    const text = typeof encoded === "string" ? encoded : await encoded;
    const ids = await session.enqueue(this.key, stamp, [text]);
    return ids[0]!;
  }

  async enqueueMany(payloads: readonly Input[], opts?: EnqueueOpts): Promise<number[]> {
    const operation = this.operation("enqueue to");
    const session = this.context.writer(operation, "use tx.enqueueManyTx");
    const stamp = jobStamp(this.stamp, opts, operation);
    const texts = await encodePayloads(this.schema, payloads, operation);
    return texts.length === 0 ? [] : await session.enqueue(this.key, stamp, texts);
  }

  async claimOne(worker: string): Promise<Job<Output> | undefined> {
    const [job] = await this.#claim(worker, 1);
    return job;
  }

  async claimBatch(worker: string, limit: number): Promise<Job<Output>[]> {
    return await this.#claim(
      worker,
      checkCount(limit, "limit", 1, this.operation("claim from")),
    );
  }

  async ackBatch(jobs: readonly Job<Output>[]): Promise<number[]> {
    const operation = this.operation("ack jobs of");
    const session = this.context.writer(operation, "use tx.ackTx");
    if (!Array.isArray(jobs)) {
      throw new TypeError(`${operation}: jobs must be an array, got ${describe(jobs)}`);
    }
    const handles = jobs.map((job) => this.own(job, operation));
    if (handles.length === 0) return [];
    const landed = await session.ack(this.key, handles.map((handle) => handle.ref()));
    this.settle(handles, new Set(landed));
    return landed;
  }

  async cancel(id: number): Promise<boolean> {
    const operation = this.operation("cancel a job of");
    const session = this.context.writer(operation, this.#identity.cancelInstead);
    return await session.cancel(this.key, checkOffset(id, "id", operation));
  }

  async getJob(id: number): Promise<JobSnapshot<Output> | undefined> {
    const operation = this.operation("get a job of");
    const session = this.context.reader(operation);
    const { now, rows } = await session.job(this.key, checkOffset(id, "id", operation));
    const [row] = rows;
    return row === undefined ? undefined : snapshotOf(row, now, this.schema, this.name);
  }

  async sweepExpired(): Promise<number> {
    const operation = this.operation("sweep");
    return await this.#inSteps(operation, (session) => session.sweep(this.key, STEP));
  }

  work(
    handler: (job: Job<Output>, tx: JoinedTx<Connection>) => unknown,
    options?: WorkOptions,
  ): WorkerHandle {
    const operation = this.operation("work");
    checkFunction(handler, "handler", operation);
    this.context.assertOpen(operation);
    // The core hands on the connection the engine gave and never looks at it.
    const run = handler as (job: Job<Output>, tx: JoinedTx) => unknown;
    return startWorker(this, run, options, operation);
  }

  async stats(): Promise<QueueStats> {
    const counts = await this.context.reader(this.operation("count")).counts(this.key);
    const { oldestReady, ...numbers } = counts;
    return {
      ...numbers,
      oldestReadyAt: oldestReady === undefined ? undefined : new Date(oldestReady),
    };
  }

  async deadJobs(options?: DeadJobsOptions): Promise<JobSnapshot<Output>[]> {
    const operation = this.operation("read dead jobs of");
    const session = this.context.reader(operation);
    checkOptions(options, ["after", "limit"], operation);
    const after = checkOffset(orDefault(options?.after, 0), "after", operation);
    const limit = checkCount(orDefault(options?.limit, 100), "limit", 1, operation);
    const { now, rows } = await session.deadJobs(this.key, after, limit);
    return rows.map((row) => snapshotOf<Output>(row, now, this.schema, this.name));
  }

  async requeue(id: number): Promise<boolean> {
    const operation = this.operation("requeue a job of");
    const session = this.context.writer(operation, "requeue after it");
    return await session.requeue(this.key, checkOffset(id, "id", operation));
  }

  async purgeDead(options?: PurgeOptions): Promise<number> {
    const operation = this.operation("purge");
    checkOptions(options, ["age"], operation);
    const age = checkDuration(orDefault(options?.age, 0), "age", operation);
    return await this.#inSteps(operation, (session) => session.purgeDead(this.key, age, STEP));
  }

  /** `Cannot enqueue to queue "mail"`. */
  operation(verb: string): string {
    return this.#wording.cannot(verb);
  }

  /** Claims rows as handles; the caller has checked the arguments. */
  async claim(session: RootSession, worker: string, limit: number): Promise<JobHandle<Output>[]> {
    const claimedAt = performance.now();
    const rows = await session.claim(this.key, worker, limit);
    if (rows.length > 0 && this.context.events.isHeard) {
      const ids = rows.map((row) => row.id);
      this.context.events.emit({ type: "claimed", queue: this.key, ids, worker });
    }
    return rows.map((row) => new JobHandle<Output>(this.context, row, this.schema, claimedAt));
  }

  /** The handle behind a job of this queue and store. */
  own(job: unknown, operation: string): JobHandle<Output> {
    if (!(job instanceof JobHandle)) {
      throw new TypeError(`${operation}: a claimed job is needed, got ${describe(job)}`);
    }
    if (job.context !== this.context || job.queue !== this.key) {
      throw new TypeError(`${operation}: job ${job.id} was claimed from another queue or store`);
    }
    return job;
  }

  async #claim(worker: string, limit: number): Promise<Job<Output>[]> {
    const operation = this.operation("claim from");
    const session = this.context.writer(operation, "claim before it");
    checkLabel("worker", worker, operation);
    return this.context.isDraining ? [] : await this.claim(session, worker, limit);
  }

  /** Notes and reports which acks of one call landed. */
  settle(handles: readonly JobHandle<Output>[], landed: ReadonlySet<number>): void {
    const { events } = this.context;
    for (const handle of handles) {
      handle.ended(landed.has(handle.id));
      if (!landed.has(handle.id)) {
        events.emit({ type: "lease-lost", queue: this.key, id: handle.id });
      }
    }
    if (landed.size > 0) events.emit({ type: "acked", queue: this.key, ids: [...landed] });
  }

  async #inSteps(
    operation: string,
    step: (session: RootSession) => Promise<number>,
  ): Promise<number> {
    let total = 0;
    while (true) {
      const moved = await step(this.context.writer(operation, "call it after the transaction"));
      total += moved;
      if (moved < STEP) return total;
    }
  }
}
