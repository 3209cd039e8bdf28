import type { Context } from "./context.ts";
import { ClosedError, DatabaseError } from "./errors.ts";
import type { Job } from "./job.ts";
import type { JobHandle } from "./job_handle.ts";
import { runInScope } from "./scope.ts";
import { Backoffs, sleep } from "./timers.ts";
import type { Transaction } from "./transaction.ts";
import type { JoinedTx } from "./tx.ts";

/**
 * How a handler ended: the job is to be acked, the attempt failed, or neither, because the handler
 * finished the job itself or the claim has ended.
 */
export type Attempt = "succeeded" | "over" | { readonly error: unknown };

/** Runs a handler for a job. Never rejects. */
export async function runAttempt<T>(
  job: JobHandle<T>,
  handler: (job: Job<T>) => unknown,
): Promise<Attempt> {
  let attempt: Attempt = "succeeded";
  try {
    await job.load();
    await handler(job);
  } catch (error) {
    attempt = { error };
  }
  // A call of the handler may still be under way, or have failed: then the job is not finished yet.
  await job.ending?.catch(() => {});
  return job.ending !== undefined || job.isAborted ? "over" : attempt;
}

/**
 * Runs a handler in a transaction that also acks the job. When the claim was lost meanwhile, the
 * handler's writes are rolled back: the next attempt makes them. Never rejects.
 */
export async function runTxAttempt<T>(
  context: Context,
  job: JobHandle<T>,
  handler: (job: Job<T>, tx: JoinedTx) => unknown,
): Promise<void> {
  let tx: Transaction<unknown> | undefined;
  try {
    await job.load();
    tx = await context.begin(context, { signal: job.signal }, "Cannot work");
    const joined: JoinedTx = tx;
    await runInScope(context, async () => await handler(job, joined));
    if (!tx.hasSettled(job)) await tx.ackTx(job);
    await tx.commit();
  } catch (error) {
    await tx?.abandon("its handler failed").catch(() => {});
    if (job.isAborted || job.ending !== undefined) return;
    if (tx?.lostJob === job) {
      context.events.emit({ type: "lease-lost", queue: job.queue, id: job.id });
      return job.ended(false);
    }
    // Nothing was applied and nothing is wrong with the job: its attempts are not for that.
    if (error instanceof DatabaseError && error.retryable) {
      context.events.error(error);
      return await persist(job, () => job.release());
    }
    await giveUp(job, error);
  }
}

/** Ends a failed attempt; through an outage, until the lease lapses. Never rejects. */
export async function giveUp<T>(job: JobHandle<T>, error: unknown): Promise<void> {
  await persist(job, () => job.retry({ error }));
}

/** Repeats a call through an outage; when it lasts, the lease lapses and recovery does the rest. */
async function persist<T>(job: JobHandle<T>, call: () => Promise<boolean>): Promise<void> {
  const backoff = new Backoffs(50, 2_000);
  while (!job.isAborted) {
    try {
      await call();
      return;
    } catch (error) {
      job.context.events.error(error);
      if (error instanceof ClosedError) return;
      await sleep(backoff.next());
    }
  }
}
