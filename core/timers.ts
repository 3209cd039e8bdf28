import { clearTimeout, setTimeout } from "node:timers";

/** A longer delay would fire at once. */
const MAX_TIMEOUT = 2 ** 31 - 1;

/** A timer that is set again and again: one pending call at most. */
export class Alarm {
  readonly #ring: () => void;
  readonly #isBackground: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** By the monotonic clock, so that a step of the wall clock moves nothing. */
  #at: number | undefined;

  /** `isBackground`: the alarm alone does not keep the process alive. */
  constructor(ring: () => void, isBackground = false) {
    this.#ring = ring;
    this.#isBackground = isBackground;
  }

  /** Rings in `delay` milliseconds, instead of whenever it was set to. */
  set(delay: number): void {
    this.clear();
    if (delay === Infinity) return;
    this.#at = performance.now() + delay;
    this.#arm(delay);
  }

  /** Rings in `delay` milliseconds unless it is set to ring earlier. */
  setEarlier(delay: number): void {
    if (this.#at === undefined || performance.now() + delay < this.#at) this.set(delay);
  }

  /** Rings no more until set again. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#at = undefined;
  }

  #arm(delay: number): void {
    this.#timer = setTimeout(() => {
      const left = (this.#at ?? 0) - performance.now();
      // Timers may be a little early, and the longest delays come in parts.
      if (left >= 1) return this.#arm(left);
      this.clear();
      this.#ring();
    }, Math.min(Math.max(Math.ceil(delay), 0), MAX_TIMEOUT));
    if (this.#isBackground) this.#timer.unref();
  }
}

/** Resolves after `delay` milliseconds; rejects with the signal's reason when it aborts before. */
export function sleep(delay: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const alarm = new Alarm(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    const abort = () => {
      alarm.clear();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    alarm.set(delay);
  });
}

/** Delays between attempts: doubling from `first` to `most` milliseconds, with ±25 % of jitter. */
export class Backoffs {
  readonly #first: number;
  readonly #most: number;
  #next: number;

  /** Starts at `first`. */
  constructor(first: number, most: number) {
    this.#first = first;
    this.#most = most;
    this.#next = first;
  }

  /** The next delay. */
  next(): number {
    const delay = this.#next * (0.75 + Math.random() / 2);
    this.#next = Math.min(this.#next * 2, this.#most);
    return delay;
  }

  /** Starts again at the first delay. */
  reset(): void {
    this.#next = this.#first;
  }
}
