import type { Job } from "./job.ts";
import { checkLabel } from "./names.ts";
import {
  checkChoice,
  checkCount,
  checkOptions,
  checkPatience,
  checkSignal,
  orDefault,
} from "./options.ts";
import type { QueueHandle } from "./queue_handle.ts";
import { outsideScopes } from "./scope.ts";
import type { JoinedTx } from "./tx.ts";
import { type Handler, WorkerLoop } from "./worker_loop.ts";

/**
 * How a queue is worked.
 *
 * @example
 * ```ts
 * import type { WorkOptions } from "@alkstore/alkstore";
 *
 * const busy: WorkOptions = { concurrency: 50, worker: "mail-1" };
 * console.log(busy);
 * ```
 */
export interface WorkOptions {
  /**
   * How many handlers run at once. It is also the size of a batch: jobs are claimed, and finished
   * ones acked, that many in one transaction. @default {1}
   */
  readonly concurrency?: number;
  /** The name claims are made under. @default a name unique to the call */
  readonly worker?: string;
  /** Stops the worker when aborted, as `stop()` does. */
  readonly signal?: AbortSignal;
  /**
   * Runs each handler in a transaction of its own that also acks the job. Handlers must end within the
   * job's visibility: on SQLite their own transaction keeps the heartbeats waiting, and a claim that
   * lapsed meanwhile rolls them back. @default {false}
   */
  readonly tx?: boolean;
}

/**
 * How a worker is stopped.
 *
 * @example
 * ```ts
 * import type { StopOptions } from "@alkstore/alkstore";
 *
 * const soon: StopOptions = { drain: 2_000 };
 * console.log(soon);
 * ```
 */
export interface StopOptions {
  /**
   * How many milliseconds running handlers have to end. After that their signals abort and their jobs
   * are given back without spending the attempt; `Infinity` waits for them. @default {30_000}
   */
  readonly drain?: number;
}

/**
 * A running worker or projection.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const worker = store.queue("mail").work((job) => console.log(job.id), { concurrency: 10 });
 * await worker.stop({ drain: 5_000 });
 * ```
 */
export interface WorkerHandle extends AsyncDisposable {
  /**
   * Resolves when the worker has stopped and every claim is finished or given back. Rejects with
   * `ClosedError` when its source died for good: the file was replaced, the store is gone.
   */
  readonly done: Promise<void>;
  /** Takes nothing new, gives running handlers time to end, and resolves with `done`. */
  stop(options?: StopOptions): Promise<void>;
}

/** How long `stop()` and an aborted signal wait for running handlers, in milliseconds. */
export const DEFAULT_DRAIN = 30_000;

/** Checks the options of `work` and starts the loop. */
export function startWorker<T>(
  queue: QueueHandle<never, T>,
  handler: (job: Job<T>, tx: JoinedTx) => unknown,
  options: WorkOptions | undefined,
  operation: string,
): WorkerHandle {
  checkOptions(options, ["concurrency", "worker", "signal", "tx"], operation);
  const signal = options?.signal === undefined
    ? undefined
    : checkSignal({ signal: options.signal }, operation);
  checkChoice(orDefault(options?.tx, false), [true, false], "tx", operation);
  const run: Handler<T> = options?.tx === true
    ? { isTransactional: true, run: handler }
    : { isTransactional: false, run: handler as (job: Job<T>) => unknown };
  const loop = new WorkerLoop(queue, run, {
    concurrency: checkCount(orDefault(options?.concurrency, 1), "concurrency", 1, operation),
    worker: options?.worker === undefined
      ? `worker-${crypto.randomUUID()}`
      : checkLabel("worker", options.worker, operation),
  });
  outsideScopes(() => loop.start(signal));
  return loop;
}

/** Checks {@linkcode StopOptions} and gives the patience in milliseconds. */
export function checkDrain(options: StopOptions | undefined, operation: string): number {
  checkOptions(options, ["drain"], operation);
  return checkPatience(orDefault(options?.drain, DEFAULT_DRAIN), "drain", operation);
}
