import type { Topic } from "../../core/engine.ts";

/** Ids drawn in one transaction; contiguous, because one writer draws at a time. */
export interface IdRange {
  first: number;
  last: number;
}

/** What a transaction has moved, collected while it runs and told to the waiters after its commit. */
export class Moved {
  /** Topics to wake in this process; other processes read them from the file. */
  readonly topics: Set<Topic> = new Set();
  /** Job ids drawn. */
  jobs: IdRange | undefined;
  /** Event offsets drawn. */
  events: IdRange | undefined;
  /** Wake numbers drawn. */
  wakes: IdRange | undefined;
  /** The number each woken topic has drawn last. */
  woken: Map<Topic, number> | undefined;

  /** Notes the ids `first` to `last` in one of the ranges; above 2^53 - 1 they could not be told apart. */
  draw(range: "jobs" | "events" | "wakes", first: number, last: number): void {
    if (last > Number.MAX_SAFE_INTEGER) {
      throw new RangeError(`the counter of the ${range} is at its end, 2^53 - 1`);
    }
    const drawn = this[range];
    if (drawn === undefined) this[range] = { first, last };
    else drawn.last = last;
  }

  /** Forgets everything: the transaction was rolled back and may be run again. */
  clear(): void {
    this.topics.clear();
    this.woken = undefined;
    this.jobs = this.events = this.wakes = undefined;
  }
}
