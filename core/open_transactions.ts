import type { EventHub } from "./events.ts";
import { Origins } from "./origin.ts";
import { Alarm } from "./timers.ts";
import type { Transaction } from "./transaction.ts";

/**
 * The open transactions of a store, and the one timer that rolls back the abandoned ones: a timer for
 * each would cost more than the rest of beginning one († 1.6 µs in Deno).
 */
export class OpenTransactions {
  readonly #open: Set<Transaction<unknown>> = new Set();
  readonly #origins: Origins = new Origins();
  readonly #events: EventHub;
  /** Stays set when a transaction ends, and then rings for nothing. */
  readonly #expiry: Alarm = new Alarm(() => this.#expireOld(), true);

  /** The shortest time-out the alarm was set for, while it is set. */
  #shortest = Infinity;
  #isClosed = false;

  /** Made by the store. */
  constructor(events: EventHub) {
    this.#events = events;
  }

  /** Remembers where one is opened: the function gives the place as text. */
  trace(): () => string {
    return this.#origins.trace();
  }

  /** Those that are open, oldest first. */
  list(): Transaction<unknown>[] {
    return [...this.#open];
  }

  /** A transaction was opened. */
  add(tx: Transaction<unknown>): void {
    this.#open.add(tx);
    if (this.#isClosed) return;
    // What was opened before this one with no longer a time-out rings before it.
    if (tx.timeout >= this.#shortest) return;
    this.#shortest = tx.timeout;
    this.#expiry.setEarlier(tx.timeout);
  }

  /** A transaction has ended. */
  delete(tx: Transaction<unknown>): void {
    this.#open.delete(tx);
  }

  /** Leaves no timer. */
  close(): void {
    this.#isClosed = true;
    this.#expiry.clear();
  }

  #expireOld(): void {
    let next = Infinity;
    this.#shortest = Infinity;
    for (const tx of this.list()) {
      const left = tx.timeout - tx.age;
      if (left <= 0) {
        void tx.expire().catch((error) => this.#events.error(error));
        continue;
      }
      next = Math.min(next, left);
      this.#shortest = Math.min(this.#shortest, tx.timeout);
    }
    this.#expiry.set(next);
  }
}
