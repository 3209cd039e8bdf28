/** Checks of arguments: a mistake in the calling code is a `TypeError` or a `RangeError`. */

import { describe } from "./names.ts";

/** The last instant that can be stored: the end of the year 9999. */
export const MAX_INSTANT = 253_402_300_799_999;

/** Refuses anything but an object with known fields; nothing stands for none. */
export function checkOptions(
  options: unknown,
  known: readonly string[],
  operation: string,
): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(`${operation}: the options must be an object, got ${describe(options)}`);
  }
  for (const field of Object.keys(options)) {
    if (!known.includes(field)) {
      throw new TypeError(
        `${operation}: unknown option "${field}", known are ${known.join(", ")}`,
      );
    }
  }
}

/** What an absent option stands for. Only absence: `null` is a mistake, and is checked as one. */
export function orDefault<T>(value: T | undefined, fallback: T): T {
  return value === undefined ? fallback : value;
}

/** A number, or a `TypeError`. */
function checkNumber(value: unknown, name: string, operation: string): number {
  if (typeof value !== "number") {
    throw new TypeError(`${operation}: ${name} must be a number, got ${describe(value)}`);
  }
  return value;
}

/** A duration in whole milliseconds, rounded up; 0 is one. */
export function checkDuration(value: unknown, name: string, operation: string): number {
  const milliseconds = checkNumber(value, name, operation);
  if (!(milliseconds >= 0 && milliseconds <= MAX_INSTANT - Date.now())) {
    throw new RangeError(
      `${operation}: ${name} must be 0 or more milliseconds and end before the year 10000, got ${milliseconds}`,
    );
  }
  return Math.ceil(milliseconds);
}

/** A duration of at least one millisecond. */
export function checkPositiveDuration(value: unknown, name: string, operation: string): number {
  const milliseconds = checkDuration(value, name, operation);
  if (milliseconds === 0) {
    throw new RangeError(`${operation}: ${name} must be more than 0 milliseconds`);
  }
  return milliseconds;
}

/** A duration that may be without end. */
export function checkPatience(value: unknown, name: string, operation: string): number {
  return value === Infinity ? Infinity : checkDuration(value, name, operation);
}

/** An instant as Unix milliseconds. */
export function checkInstant(value: unknown, name: string, operation: string): number {
  if (!(value instanceof Date)) {
    throw new TypeError(`${operation}: ${name} must be a Date, got ${describe(value)}`);
  }
  const instant = value.getTime();
  if (!(Math.abs(instant) <= MAX_INSTANT)) {
    throw new RangeError(
      `${operation}: ${name} must be a valid date before the year 10000, got ${String(value)}`,
    );
  }
  return instant;
}

/** A whole number of at least `least`. */
export function checkCount(value: unknown, name: string, least: number, operation: string): number {
  const count = checkNumber(value, name, operation);
  if (!(Number.isSafeInteger(count) && count >= least)) {
    throw new RangeError(
      `${operation}: ${name} must be a whole number of at least ${least}, got ${count}`,
    );
  }
  return count;
}

/** A stream offset or a job id: a whole number from 0 to 2^53 - 1. */
export function checkOffset(value: unknown, name: string, operation: string): number {
  return checkCount(value, name, 0, operation);
}

/** A priority: a 32-bit integer. */
export function checkPriority(value: unknown, operation: string): number {
  const priority = checkNumber(value, "priority", operation);
  if (!(Number.isInteger(priority) && Math.abs(priority + 0.5) <= 2 ** 31 - 0.5)) {
    throw new RangeError(
      `${operation}: priority must be a whole number from -2147483648 to 2147483647, got ${priority}`,
    );
  }
  return priority;
}

/** A function, or a `TypeError`. */
export function checkFunction(value: unknown, name: string, operation: string): void {
  if (typeof value !== "function") {
    throw new TypeError(`${operation}: ${name} must be a function, got ${describe(value)}`);
  }
}

/** One of a few strings or booleans, or a `TypeError`. */
export function checkChoice(
  value: unknown,
  choices: readonly (string | boolean)[],
  name: string,
  operation: string,
): void {
  if (!choices.some((choice) => choice === value)) {
    throw new TypeError(
      `${operation}: ${name} must be one of ${
        choices.map((c) => JSON.stringify(c)).join(", ")
      }, got ${describe(value)}`,
    );
  }
}

/**
 * Options of a call that waits.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { WaitOptions } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * await using receiver = await store.listen("settings");
 * const options: WaitOptions = { signal: AbortSignal.timeout(10) };
 * await receiver.recv(options).catch((reason) => console.log(reason.name)); // "TimeoutError"
 * ```
 */
export interface WaitOptions {
  /** Ends the wait: the call rejects with the signal's reason and leaves nothing behind. */
  readonly signal?: AbortSignal;
}

/** Checks {@linkcode WaitOptions} and gives the signal. */
export function checkSignal(
  options: WaitOptions | undefined,
  operation: string,
): AbortSignal | undefined {
  checkOptions(options, ["signal"], operation);
  const signal: unknown = options?.signal;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`${operation}: signal must be an AbortSignal, got ${describe(signal)}`);
  }
  return signal;
}
