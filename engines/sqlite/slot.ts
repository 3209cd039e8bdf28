import { setImmediate } from "node:timers";

/** Somebody in the line for the right to write. */
export interface Entry {
  /** Where it comes from, for the message of who waits for it. */
  readonly label: () => string;
  /** Resolves when it is its turn; rejects when it was taken out of the line. */
  readonly entered: Promise<void>;
}

interface Place extends Entry {
  readonly isUrgent: boolean;
  readonly enter: () => void;
  readonly reject: (reason: unknown) => void;
}

const ENTERED = Promise.resolve();

/** How long turns may follow each other before timers and I/O get theirs, in milliseconds. */
const BREATH = 10;

/**
 * The right to write to a file: one holder at a time per process, first come first served. SQLite
 * itself would make two connections of one thread wait for each other in a blocking call.
 */
export class Slot {
  readonly #line: Place[] = [];
  #holder: Place | undefined;
  #heldSince = 0;
  #breath: Promise<void> | undefined;
  #breathingSince = 0;

  /** Whose turn it is. */
  get holder(): Entry | undefined {
    return this.#holder;
  }

  /** For how many milliseconds it has been the holder's turn. */
  get heldFor(): number {
    return this.#holder === undefined ? 0 : performance.now() - this.#heldSince;
  }

  /** Takes the turn if it is free and nobody is owed a breath. */
  enterNow(label: () => string): Entry | undefined {
    if (this.#holder !== undefined || this.breathe() !== undefined) return undefined;
    const place: Place = { label, isUrgent: false, entered: ENTERED, enter() {}, reject() {} };
    this.#hold(place);
    return place;
  }

  /** Joins the line; an urgent entry goes before all that are not. */
  enter(label: () => string, isUrgent: boolean): Entry {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const place: Place = { label, isUrgent, entered: promise, enter: resolve, reject };
    if (isUrgent) {
      const index = this.#line.findIndex((other) => !other.isUrgent);
      this.#line.splice(index === -1 ? this.#line.length : index, 0, place);
    } else {
      this.#line.push(place);
    }
    this.#next();
    return place;
  }

  /** Gives the turn to the next. Does nothing when it is not this entry's turn. */
  leave(entry: Entry): void {
    if (this.#holder !== entry) return;
    this.#holder = undefined;
    this.#next();
  }

  /** Takes an entry out of the line: `entered` rejects with `reason`. Too late once it is its turn. */
  withdraw(entry: Entry, reason: unknown): void {
    const index = this.#line.findIndex((place) => place === entry);
    if (index >= 0) this.#line.splice(index, 1)[0]?.reject(reason);
  }

  /**
   * SQLite calls are synchronous and our promises settle in microtasks: a busy caller would keep
   * timers, signals and I/O waiting for as long as it has work. Resolves at once, and every 10 ms of
   * uninterrupted turns only after the event loop has gone round.
   */
  breathe(): Promise<void> | undefined {
    if (this.#breath === undefined) {
      this.#breathingSince = performance.now();
      this.#breath = new Promise((resolve) => {
        setImmediate(() => {
          this.#breath = undefined;
          resolve();
        });
      });
      return undefined;
    }
    return performance.now() - this.#breathingSince > BREATH ? this.#breath : undefined;
  }

  /** Resolves when nothing of it is pending in the event loop. */
  async settle(): Promise<void> {
    await this.#breath;
  }

  #next(): void {
    if (this.#holder !== undefined) return;
    const place = this.#line.shift();
    if (place === undefined) return;
    this.#hold(place);
    place.enter();
  }

  #hold(place: Place): void {
    this.#holder = place;
    this.#heldSince = performance.now();
  }
}
