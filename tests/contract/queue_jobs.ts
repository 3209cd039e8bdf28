/** Brings jobs where a test wants them, however slow the machine is. */

import { assertExists } from "@std/assert";
import { delay } from "@std/async";
import type { Job, JobAbortError, Store, StoreEvent } from "../../mod.ts";
import type { TestDatabase } from "./harness.ts";
import { soon, until } from "./wait.ts";

/** A lease or an expiry that does not end while a test runs, in milliseconds. */
export const LONG = 60_000;

/** A lease or an expiry that a test lets end, in milliseconds. */
export const SHORT = 60;

/** What a queue is asked for a job. */
interface Claimable<T> {
  claimOne(worker: string): Promise<Job<T> | undefined>;
}

/** Waits until a lease or an expiry of `duration` that began before this call has ended for sure. */
export async function passed(duration: number): Promise<void> {
  await delay(duration + 15);
}

/** Claims a job that must be there. */
export async function claim<T>(queue: Claimable<T>, worker = "worker"): Promise<Job<T>> {
  const job = await queue.claimOne(worker);
  assertExists(job, "there is no job to claim");
  return job;
}

/** Claims a job whose lease is short, and makes the lease long before it ends. */
export async function claimFirmly<T>(queue: Claimable<T>, worker = "worker"): Promise<Job<T>> {
  return await until(async () => {
    const job = await queue.claimOne(worker);
    return job !== undefined && await job.heartbeat(LONG) ? job : undefined;
  }, "a firm claim");
}

/** Resolves with the reason once `signal` aborts. */
export async function abortReason(signal: AbortSignal): Promise<JobAbortError> {
  await soon(
    new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve(), { once: true });
    }),
    "the abort of the job's signal",
  );
  return signal.reason;
}

/** Collects what the store reports. */
export function eventsOf(store: Store<unknown>): StoreEvent[] {
  const events: StoreEvent[] = [];
  store.onEvent((event) => events.push(event));
  return events;
}

/** Those events of one type. */
export function ofType<Type extends StoreEvent["type"]>(
  events: readonly StoreEvent[],
  type: Type,
): Extract<StoreEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<StoreEvent, { type: Type }> =>
    event.type === type
  );
}

/**
 * Runs `work` while an open transaction of somebody else's has written the job: on every engine,
 * nobody else can write it meanwhile. The transaction is rolled back.
 */
export async function whileHeld<T>(
  database: TestDatabase,
  queue: string,
  id: number,
  work: () => Promise<T>,
): Promise<T> {
  const outsider = await database.open();
  const foreign = await database.beginForeign();
  try {
    const tx = await outsider.joinTx(foreign.connection);
    await tx.cancelTx(queue, id);
    return await work();
  } finally {
    await foreign.rollback();
    await foreign.close();
  }
}
