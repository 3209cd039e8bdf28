/** Frames of these folders are ours. */
const OURS: readonly string[] = [import.meta.resolve("./"), import.meta.resolve("../engines/")];

/** Ours between the caller and here, and one more. */
const FRAMES = 12;

/** So many transactions are traced at first, and one of so many later. */
const TRACED_AT_FIRST = 32;
const TRACED_ONE_OF = 32;

/** How many places are kept. */
const KEPT = 8;

/**
 * Remembers where the transactions of a store are opened, for messages like "a transaction opened at …
 * is still open".
 *
 * A trace costs as much as half a transaction († 3 to 9 µs in Deno, 2 to 5 µs in Node). So the first
 * ones are traced and then a sample: applications open transactions in few places. Once anybody has
 * asked for an origin, which means that one is in the way, every transaction is traced.
 */
export class Origins {
  readonly #traces: Error[] = [];
  #count = 0;
  #isWanted = false;

  /** Call it where the transaction is opened; the function gives the place as text. */
  trace(): () => string {
    const count = this.#count++;
    if (!this.#isWanted && count >= TRACED_AT_FIRST && count % TRACED_ONE_OF !== 0) {
      return () => {
        this.#isWanted = true;
        return this.#guess();
      };
    }
    const error = captured();
    this.#traces.push(error);
    if (this.#traces.length > KEPT) this.#traces.shift();
    return () => {
      this.#isWanted = true;
      return placeOf(error);
    };
  }

  /** Of a transaction that was not traced: where the last traced ones were opened. */
  #guess(): string {
    const places = new Set(this.#traces.map(placeOf));
    return `probably ${[...places].join(" or ")} (it was not traced, from now on all are)`;
  }
}

function captured(): Error {
  const limit = Error.stackTraceLimit;
  // In Node each frame costs, and the caller's is one of the first.
  Error.stackTraceLimit = FRAMES;
  const error = new Error();
  Error.stackTraceLimit = limit;
  return error;
}

/** Worded only when it is asked for. */
function placeOf(error: Error): string {
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  const foreign = frames.find((line) => !OURS.some((folder) => line.includes(folder)));
  const frame = foreign ?? frames.at(-1);
  return frame?.trim().replace(/^at (async )?/, "") ?? "an unknown place";
}
