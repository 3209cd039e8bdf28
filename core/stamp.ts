import type { JobStamp } from "./engine.ts";
import {
  checkCount,
  checkDuration,
  checkInstant,
  checkOptions,
  checkPositiveDuration,
  checkPriority,
} from "./options.ts";
import type { EnqueueOpts, QueueOpts } from "./queue.ts";
import { type Backoff, checkBackoff, encodeBackoff, OUTBOX_BACKOFF } from "./retry.ts";

/** What a job gets when neither its options nor its queue's say otherwise. */
export const DEFAULT_STAMP: JobStamp = stampOf(60_000, 5, checkBackoff(undefined, ""));

/** What every job of an outbox gets (ADR-014 §1, ADR-010 §3). */
export const OUTBOX_STAMP: JobStamp = stampOf(60_000, 5, OUTBOX_BACKOFF);

/** Checks the settings of a queue and makes the stamp of its jobs. */
export function queueStamp(opts: QueueOpts | undefined, operation: string): JobStamp {
  checkOptions(opts, ["visibility", "maxAttempts", "backoff", "schema"], operation);
  if (opts === undefined) return DEFAULT_STAMP;
  return stampOf(
    opts.visibility === undefined
      ? DEFAULT_STAMP.visibility
      : checkPositiveDuration(opts.visibility, "visibility", operation),
    opts.maxAttempts === undefined
      ? DEFAULT_STAMP.maxAttempts
      : checkCount(opts.maxAttempts, "maxAttempts", 1, operation),
    checkBackoff(opts.backoff, operation),
  );
}

/** Checks the options of an enqueue and lays them over the stamp of the queue. */
export function jobStamp(
  queue: JobStamp,
  opts: EnqueueOpts | undefined,
  operation: string,
): JobStamp {
  if (opts === undefined || isEmpty(opts)) return queue;
  checkOptions(opts, ["delay", "runAt", "priority", "maxAttempts", "expires"], operation);
  if (opts.delay !== undefined && opts.runAt !== undefined) {
    throw new TypeError(`${operation}: give delay or runAt, not both`);
  }
  const delay = opts.delay === undefined ? 0 : checkDuration(opts.delay, "delay", operation);
  const runAt = opts.runAt === undefined ? undefined : checkInstant(opts.runAt, "runAt", operation);
  const expires = opts.expires === undefined
    ? undefined
    : checkPositiveDuration(opts.expires, "expires", operation);
  const dueIn = runAt === undefined ? delay : runAt - Date.now();
  if (expires !== undefined && expires <= dueIn) {
    throw new RangeError(
      `${operation}: the job would expire in ${expires} ms, before its run time in ${dueIn} ms`,
    );
  }
  return {
    ...queue,
    delay,
    runAt,
    expires,
    priority: opts.priority === undefined ? 0 : checkPriority(opts.priority, operation),
    maxAttempts: opts.maxAttempts === undefined
      ? queue.maxAttempts
      : checkCount(opts.maxAttempts, "maxAttempts", 1, operation),
  };
}

/** `{}` is what most callers of a `*Tx` method pass. */
function isEmpty(opts: EnqueueOpts): boolean {
  if (typeof opts !== "object" || opts === null) return false;
  if (Object.getPrototypeOf(opts) !== Object.prototype) return false;
  for (const _ in opts) return false;
  return true;
}

function stampOf(visibility: number, maxAttempts: number, backoff: Required<Backoff>): JobStamp {
  return {
    priority: 0,
    delay: 0,
    runAt: undefined,
    maxAttempts,
    visibility,
    backoff: encodeBackoff(backoff),
    expires: undefined,
  };
}
