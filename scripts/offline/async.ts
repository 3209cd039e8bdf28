/**
 * Stands in for `@std/async`: the helpers that this project's tests use.
 *
 * @module
 */

/** Options for {@linkcode delay}. */
export interface DelayOptions {
  /** Ends the delay early: the promise rejects with the signal's reason. @default {none} */
  signal?: AbortSignal;
  /** Whether the process stays alive until the delay is over. @default {true} */
  persistent?: boolean;
}

/** Options for {@linkcode deadline}. */
export interface DeadlineOptions {
  /** Gives up early: the promise rejects with the signal's reason. @default {none} */
  signal?: AbortSignal;
}

/** Options for {@linkcode retry}. */
export interface RetryOptions {
  /** Factor by which each wait grows. @default {2} */
  multiplier?: number;
  /** Longest wait, in milliseconds. @default {60_000} */
  maxTimeout?: number;
  /** Attempts before giving up. @default {5} */
  maxAttempts?: number;
  /** First wait, in milliseconds. @default {1_000} */
  minTimeout?: number;
  /** Share of each wait that is random, from 0 to 1. @default {1} */
  jitter?: number;
  /** Tells whether an error is worth another attempt. @default {() => true} */
  isRetriable?: (err: unknown) => boolean;
  /** Stops: the promise rejects with the signal's reason. @default {none} */
  signal?: AbortSignal;
}

/** Thrown by {@linkcode retry} after the last attempt; its cause is that attempt's error. */
export class RetryError extends Error {
  override readonly name: string = "RetryError";

  /** Makes the error that follows `attempts` failed attempts. */
  constructor(cause: unknown, attempts: number) {
    super(`Retrying exceeded the maxAttempts (${attempts}).`, { cause });
  }
}

/** The longest time, in milliseconds, that a timer keeps. */
const longestTimer = 2 ** 31 - 1;

/** Resolves after some milliseconds. */
export function delay(ms: number, options: DelayOptions = {}): Promise<void> {
  const { signal, persistent = true } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = startTimer(ms, persistent, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    const abort = (): void => {
      stop();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Settles as the promise does, or rejects with a `TimeoutError` after some milliseconds. */
export async function deadline<T>(
  p: Promise<T>,
  ms: number,
  options: DeadlineOptions = {},
): Promise<T> {
  const { signal } = options;
  signal?.throwIfAborted();
  let leave = (): void => {};
  const lapse = new Promise<never>((_, reject) => {
    const stop = startTimer(ms, true, () => {
      reject(new DOMException("Signal timed out.", "TimeoutError"));
    });
    const abort = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    leave = (): void => {
      stop();
      signal?.removeEventListener("abort", abort);
    };
  });
  try {
    return await Promise.race([p, lapse]);
  } finally {
    leave();
  }
}

/** Calls a function until it succeeds, with a growing wait between the attempts. */
export async function retry<T>(
  fn: (() => Promise<T>) | (() => T),
  options: RetryOptions = {},
): Promise<T> {
  const {
    multiplier = 2,
    maxTimeout = 60_000,
    maxAttempts = 5,
    minTimeout = 1_000,
    jitter = 1,
    isRetriable = () => true,
    signal,
  } = options;
  requireThat(
    maxTimeout > 0,
    `'maxTimeout' must be a positive number: current value is ${maxTimeout}`,
  );
  requireThat(minTimeout >= 0, `'minTimeout' must be >= 0: current value is ${minTimeout}`);
  requireThat(
    minTimeout <= maxTimeout,
    `'minTimeout' must be <= 'maxTimeout': current values 'minTimeout=${minTimeout}', ` +
      `'maxTimeout=${maxTimeout}'`,
  );
  requireThat(
    Number.isInteger(maxAttempts) && maxAttempts >= 1,
    `'maxAttempts' must be a positive integer: current value is ${maxAttempts}`,
  );
  requireThat(
    Number.isFinite(multiplier) && multiplier >= 1,
    `'multiplier' must be a finite number >= 1: current value is ${multiplier}`,
  );
  requireThat(
    jitter >= 0 && jitter <= 1,
    `'jitter' must be between 0 and 1: current value is ${jitter}`,
  );
  for (let attempt = 1;; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await fn();
    } catch (error) {
      if (!isRetriable(error)) throw error;
      if (attempt >= maxAttempts) throw new RetryError(error, maxAttempts);
    }
    const wait = Math.min(maxTimeout, minTimeout * multiplier ** (attempt - 1));
    await delay(wait * (1 - jitter * Math.random()), signal === undefined ? {} : { signal });
  }
}

function requireThat(holds: boolean, rule: string): void {
  if (!holds) throw new RangeError(`Cannot retry as ${rule}`);
}

/** Calls back once, after any number of milliseconds; gives the function that stops it. */
function startTimer(ms: number, persistent: boolean, done: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const wait = (left: number): void => {
    const step = Math.min(left, longestTimer);
    timer = setTimeout(() => left > step ? wait(left - step) : done(), step);
    // Where timers are plain numbers there is nothing to let go.
    if (!persistent && typeof timer === "object") timer.unref();
  };
  wait(Math.max(0, ms));
  return () => clearTimeout(timer);
}
