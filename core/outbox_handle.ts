import { runAttempt } from "./attempt.ts";
import type { Context } from "./context.ts";
import { Heartbeats } from "./heartbeats.ts";
import type { Job, JobSnapshot } from "./job.ts";
import type { JobHandle } from "./job_handle.ts";
import { checkLabel, Reserved } from "./names.ts";
import { checkFunction, checkOptions } from "./options.ts";
import type { DeliveryContext, Outbox, RunOptions } from "./outbox.ts";
import type { DeadJobsOptions, EnqueueOpts, PurgeOptions, QueueStats } from "./queue.ts";
import { QueueHandle } from "./queue_handle.ts";
import type { StandardSchema } from "./schema.ts";
import { OUTBOX_STAMP } from "./stamp.ts";
import type { WorkerHandle } from "./worker.ts";

type Deliver<T> = (payload: T, context: DeliveryContext) => unknown;

/** The key of the backing queue of an outbox (ADR-008 §4, ADR-014 §1). */
export function outboxKey(name: string): string {
  return `${Reserved.PREFIX}outbox:${name}`;
}

/** The {@linkcode Outbox} of the caller: a queue that only it reaches. */
export class OutboxHandle<Input, Output> implements Outbox<Input, Output> {
  readonly name: string;
  readonly context: Context;
  readonly schema: StandardSchema | undefined;
  readonly #queue: QueueHandle<Input, Output>;

  /** Made by the store, from checked settings. */
  constructor(context: Context, name: string, schema: StandardSchema | undefined) {
    this.name = name;
    this.context = context;
    this.schema = schema;
    const identity = {
      kind: "outbox",
      name,
      key: outboxKey(name),
      enqueueInstead: "use tx.outboxEnqueueTx",
      cancelInstead: "cancel before or after it",
    };
    this.#queue = new QueueHandle(context, identity, OUTBOX_STAMP, schema);
  }

  /** `Cannot enqueue to outbox "mail"`. */
  operation(verb: string): string {
    return this.#queue.operation(verb);
  }

  enqueue(payload: Input, opts?: EnqueueOpts): Promise<number> {
    return this.#queue.enqueue(payload, opts);
  }

  async runOnce(worker: string, deliver: Deliver<Output>): Promise<boolean> {
    const operation = this.#queue.operation("run");
    checkLabel("worker", worker, operation);
    checkFunction(deliver, "deliver", operation);
    const session = this.context.writer(operation, "run it after the transaction");
    if (this.context.isDraining) return false;
    const [job] = await this.#queue.claim(session, worker, 1);
    if (job === undefined) return false;
    const heartbeats = new Heartbeats<Output>(this.context, this.#queue.key);
    heartbeats.add(job);
    try {
      const attempt = await runAttempt(job, (claimed) => handOver(claimed, deliver));
      if (typeof attempt === "object") await job.retry(attempt);
      else if (attempt === "succeeded") await job.ack();
    } finally {
      heartbeats.close();
    }
    return true;
  }

  run(deliver: Deliver<Output>, options?: RunOptions): WorkerHandle {
    const operation = this.#queue.operation("run");
    checkFunction(deliver, "deliver", operation);
    checkOptions(options, ["concurrency", "worker", "signal"], operation);
    return this.#queue.work((job) => handOver(job, deliver), options);
  }

  getJob(id: number): Promise<JobSnapshot<Output> | undefined> {
    return this.#queue.getJob(id);
  }

  cancel(id: number): Promise<boolean> {
    return this.#queue.cancel(id);
  }

  stats(): Promise<QueueStats> {
    return this.#queue.stats();
  }

  deadJobs(options?: DeadJobsOptions): Promise<JobSnapshot<Output>[]> {
    return this.#queue.deadJobs(options);
  }

  requeue(id: number): Promise<boolean> {
    return this.#queue.requeue(id);
  }

  purgeDead(options?: PurgeOptions): Promise<number> {
    return this.#queue.purgeDead(options);
  }

  sweepExpired(): Promise<number> {
    return this.#queue.sweepExpired();
  }
}

/** Only the outbox finishes its jobs: a delivery gets what it needs to know, not the job. */
function handOver<T>(job: Job<T> | JobHandle<T>, deliver: Deliver<T>): unknown {
  return deliver(job.payload, {
    id: job.id,
    attempt: job.attempt,
    lastAttempt: job.lastAttempt,
    signal: job.signal,
  });
}
