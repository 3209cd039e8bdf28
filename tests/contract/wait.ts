/** Waiting for what must happen, with a limit that only a broken implementation reaches. */

import { delay } from "@std/async";

/** How long a test waits for something that must happen, in milliseconds. */
export const PATIENCE = 15_000;

/** Resolves with what `promise` resolves with; rejects when that takes longer than it ever may. */
export async function soon<T>(promise: Promise<T>, what = "the expected event"): Promise<T> {
  const expiry = new AbortController();
  const limit = delay(PATIENCE, { signal: expiry.signal }).then(
    () => Promise.reject(new Error(`${what} did not happen within ${PATIENCE} ms`)),
    () => new Promise<never>(() => {}),
  );
  try {
    return await Promise.race([promise, limit]);
  } finally {
    expiry.abort();
  }
}

/** Asks again and again until `probe` gives something true, and resolves with it. */
export async function until<T>(
  probe: () => T | Promise<T>,
  what = "the expected state",
): Promise<NonNullable<T>> {
  const start = performance.now();
  while (true) {
    const value = await probe();
    if (value !== undefined && value !== null && value !== false) return value as NonNullable<T>;
    if (performance.now() - start > PATIENCE) {
      throw new Error(`${what} was not reached within ${PATIENCE} ms`);
    }
    await delay(2);
  }
}
