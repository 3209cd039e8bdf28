import { ClosedError } from "../../core/errors.ts";
import { sleep } from "../../core/timers.ts";

/**
 * Waits `delay` milliseconds before a busy file is tried again. Rejects with `ClosedError` as soon as
 * the store is closed, so that no timer outlives it, and with the reason of the caller's own signal.
 */
export async function pause(
  delay: number,
  operation: string,
  closing: AbortSignal,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await sleep(delay, signal === undefined ? closing : AbortSignal.any([closing, signal]));
  } catch (error) {
    if (closing.aborted) throw new ClosedError(`${operation}: the store is closed`);
    throw error;
  }
}
