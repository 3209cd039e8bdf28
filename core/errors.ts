/**
 * The error taxonomy (ADR-008 §5): a class of its own only where the caller can act differently.
 * Everything else is a {@linkcode DatabaseError} with the driver's error in `cause`.
 */

/**
 * The `code` of each error class: its name in contract v1.
 *
 * @example
 * ```ts
 * import { AlkstoreError, type ErrorCode } from "@alkstore/alkstore";
 *
 * function codeOf(error: unknown): ErrorCode | undefined {
 *   return error instanceof AlkstoreError ? error.code : undefined;
 * }
 * console.log(codeOf(new Error("another one"))); // undefined
 * ```
 */
export type ErrorCode =
  | "PayloadTooLarge"
  | "ReservedName"
  | "InvalidName"
  | "Closed"
  | "Codec"
  | "Database";

/**
 * The base of every error alkstore throws, apart from `TypeError` and `RangeError` for mistakes in
 * the calling code and the abort reason of a caller's own signal.
 *
 * Compare `code` where two copies of the package may be loaded (one from JSR, one from npm): their
 * classes differ, their codes do not.
 *
 * @example
 * ```ts
 * import { AlkstoreError, ReservedNameError } from "@alkstore/alkstore";
 *
 * const error: unknown = new ReservedNameError("Cannot open queue", "__alkstore_x");
 * if (error instanceof AlkstoreError && error.code === "ReservedName") {
 *   console.log(error.message);
 * }
 * ```
 */
export abstract class AlkstoreError extends Error {
  /** The name of the error in contract v1, equal on every engine and in every copy of the package. */
  abstract readonly code: ErrorCode;
}

/**
 * A `notify` payload is longer than the engine can carry. Nothing was sent.
 * Use a stream or an outbox row for content. Never thrown on SQLite, which has no limit (ADR-008 §5).
 *
 * @example
 * ```ts
 * import { PayloadTooLargeError } from "@alkstore/alkstore";
 *
 * const error = new PayloadTooLargeError("Cannot notify", 7999, 8000);
 * console.log(error.limit);
 * ```
 */
export class PayloadTooLargeError extends AlkstoreError {
  /** `"PayloadTooLargeError"`. */
  override readonly name = "PayloadTooLargeError";
  /** `"PayloadTooLarge"`. */
  override readonly code = "PayloadTooLarge";
  /** The largest payload the engine carries, in bytes of UTF-8. */
  readonly limit: number;

  /** Made by the store; `size` and `limit` are bytes of UTF-8. */
  constructor(operation: string, limit: number, size: number) {
    super(
      `${operation}: the payload has ${size} bytes, the limit is ${limit}; put the content in a stream or an outbox row`,
    );
    this.limit = limit;
  }
}

/**
 * A channel, stream, queue, lock or outbox name starts with the reserved prefix `__alkstore_`.
 * Thrown before any I/O, on the plain and on the tx path (ADR-008 §4).
 *
 * @example
 * ```ts
 * import { ReservedNameError } from "@alkstore/alkstore";
 *
 * const error = new ReservedNameError("Cannot open queue", "__alkstore_x");
 * console.log(error.rejectedName);
 * ```
 */
export class ReservedNameError extends AlkstoreError {
  /** `"ReservedNameError"`. */
  override readonly name = "ReservedNameError";
  /** `"ReservedName"`. */
  override readonly code = "ReservedName";
  /** The name that was refused. */
  readonly rejectedName: string;

  /** Made by the store. */
  constructor(operation: string, rejectedName: string) {
    super(
      `${operation}: the name ${
        quote(rejectedName)
      } is reserved, names must not start with "__alkstore_"`,
    );
    this.rejectedName = rejectedName;
  }
}

/**
 * A name, key, consumer, worker or owner is empty, longer than 1,000 bytes of UTF-8, ill-formed or
 * holds U+0000. Thrown before any I/O, on the plain and on the tx path (ADR-008 §4).
 *
 * @example
 * ```ts
 * import { InvalidNameError } from "@alkstore/alkstore";
 *
 * const error = new InvalidNameError("Cannot open queue", "", "it is empty");
 * console.log(error.rejectedName === "");
 * ```
 */
export class InvalidNameError extends AlkstoreError {
  /** `"InvalidNameError"`. */
  override readonly name = "InvalidNameError";
  /** `"InvalidName"`. */
  override readonly code = "InvalidName";
  /** The name that was refused. */
  readonly rejectedName: string;

  /** Made by the store; `fact` says what is wrong with the name. */
  constructor(operation: string, rejectedName: string, fact: string) {
    super(`${operation}: the name ${quote(rejectedName)} cannot be used, ${fact}`);
    this.rejectedName = rejectedName;
  }
}

/**
 * The store, transaction, receiver or lock that was used is closed, finished or lapsed.
 * Where the source died by itself, its death is in `cause`.
 *
 * @example
 * ```ts
 * import { ClosedError } from "@alkstore/alkstore";
 *
 * const error = new ClosedError("Cannot enqueue: the store is closed");
 * console.log(error.code);
 * ```
 */
export class ClosedError extends AlkstoreError {
  /** `"ClosedError"`. */
  override readonly name = "ClosedError";
  /** `"Closed"`. */
  override readonly code = "Closed";
}

/**
 * A payload cannot be written as JSON, read as JSON, or does not fit its schema.
 * On the way in nothing was written; on the way out only the one job or event is affected.
 *
 * @example
 * ```ts
 * import { CodecError } from "@alkstore/alkstore";
 *
 * const error = new CodecError("Cannot encode", "$.items[3].at", "a Date is not JSON");
 * console.log(error.path);
 * ```
 */
export class CodecError extends AlkstoreError {
  /** `"CodecError"`. */
  override readonly name = "CodecError";
  /** `"Codec"`. */
  override readonly code = "Codec";
  /** Where in the payload the fault lies, from `$`: `$.items[3].at`. */
  readonly path: string;

  /** Made by the store; `fact` says what is wrong at `path`. */
  constructor(operation: string, path: string, fact: string, options?: ErrorOptions) {
    super(`${operation}: ${fact} at ${path}`, options);
    this.path = path;
  }
}

/**
 * What a failed {@linkcode DatabaseError} operation has left behind.
 *
 * @example
 * ```ts
 * import { DatabaseError, type DatabaseOutcome } from "@alkstore/alkstore";
 *
 * const outcome: DatabaseOutcome = new DatabaseError("Cannot commit").outcome;
 * console.log(outcome); // "not-applied"
 * ```
 */
export type DatabaseOutcome =
  /** Nothing was applied. */
  | "not-applied"
  /** The connection was lost at or after COMMIT: the write may or may not be there. */
  | "unknown";

/**
 * How a {@linkcode DatabaseError} is classified.
 *
 * @example
 * ```ts
 * import { DatabaseError, type DatabaseErrorOptions } from "@alkstore/alkstore";
 *
 * const options: DatabaseErrorOptions = { retryable: true, cause: new Error("busy") };
 * console.log(new DatabaseError("Cannot enqueue", options).retryable);
 * ```
 */
export interface DatabaseErrorOptions extends ErrorOptions {
  /** Whether repeating the whole transaction or call may succeed. @default {false} */
  readonly retryable?: boolean;
  /** What the failed operation has left behind. @default {"not-applied"} */
  readonly outcome?: DatabaseOutcome;
}

/**
 * Everything else that goes wrong between the store and its database. The driver's own error is in
 * `cause`.
 *
 * @example
 * ```ts
 * import { DatabaseError } from "@alkstore/alkstore";
 *
 * const error = new DatabaseError("Cannot enqueue: the database is locked", { retryable: true });
 * console.log(error.retryable, error.outcome);
 * ```
 */
export class DatabaseError extends AlkstoreError {
  /** `"DatabaseError"`. */
  override readonly name = "DatabaseError";
  /** `"Database"`. */
  override readonly code = "Database";
  /**
   * Nothing was applied and repeating the whole transaction (or the one call, outside a
   * transaction) may succeed: serialization failure, deadlock, a busy writer, a connection lost
   * before COMMIT was sent.
   */
  readonly retryable: boolean;
  /** What the failed operation has left behind: `"unknown"` when it may or may not be applied. */
  readonly outcome: DatabaseOutcome;

  /** Made by the store and its engines. */
  constructor(message: string, options: DatabaseErrorOptions = {}) {
    super(message, options);
    this.retryable = options.retryable ?? false;
    this.outcome = options.outcome ?? "not-applied";
  }
}

/** A value as it may stand in a message: quoted, with control characters escaped, and short. */
export function quote(text: string): string {
  if (text.length <= 80) return JSON.stringify(text);
  // Not in the middle of a pair of surrogates.
  const end = /[\uD800-\uDBFF]/.test(text.charAt(79)) ? 79 : 80;
  return JSON.stringify(`${text.slice(0, end)}…`);
}
