import { ClosedError } from "./errors.ts";
import { Alarm } from "./timers.ts";

/** A call that waits in line. */
interface Waiting<T> {
  readonly resolve: (value: T | undefined) => void;
  readonly leave: () => void;
}

/**
 * The line of calls that wait for a source, and the way it ends. Waiting calls are served in the
 * order they came.
 */
export class Line<T> {
  readonly #waiting: Set<Waiting<T>> = new Set();
  #isClosed = false;
  #death: Error | undefined;

  /** Whether the source has ended, by `close()` or by its death. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Why the source died, unless it was closed. */
  get death(): Error | undefined {
    return this.#death;
  }

  /** Waits for a value; nothing when the source ends. Rejects when the signal aborts. */
  wait(signal: AbortSignal | undefined): Promise<T | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const waiting: Waiting<T> = {
        resolve,
        leave: () => {
          this.#waiting.delete(waiting);
          signal?.removeEventListener("abort", abort);
        },
      };
      const abort = () => {
        waiting.leave();
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.add(waiting);
    });
  }

  /** Like `wait`, but gives up after `patience` milliseconds with nothing. */
  async waitFor(patience: number, signal: AbortSignal | undefined): Promise<T | undefined> {
    const expiry = new AbortController();
    const alarm = new Alarm(() => expiry.abort());
    alarm.set(patience);
    try {
      return await this.wait(
        signal === undefined ? expiry.signal : AbortSignal.any([signal, expiry.signal]),
      );
    } catch (error) {
      if (signal?.aborted === true) throw error;
      return undefined;
    } finally {
      alarm.clear();
    }
  }

  /** Hands `value` to the call that waits longest; whether there was one. */
  serve(value: T): boolean {
    for (const waiting of this.#waiting) {
      waiting.leave();
      waiting.resolve(value);
      return true;
    }
    return false;
  }

  /** Ends the source: every waiting call gets nothing. */
  end(death?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#death = death;
    for (const waiting of [...this.#waiting]) {
      waiting.leave();
      waiting.resolve(undefined);
    }
  }

  /** The error of a call on an ended source. */
  closedError(operation: string, what: string): ClosedError {
    if (this.#death === undefined) return new ClosedError(`${operation}: the ${what} is closed`);
    return new ClosedError(`${operation}: the source of the ${what} died`, { cause: this.#death });
  }
}
