import { InvalidNameError, quote, ReservedNameError } from "./errors.ts";

/**
 * The reserved namespace (ADR-008 §4). No channel, stream, queue, lock or outbox name may start with
 * `Reserved.PREFIX`; a `Wake` on `Reserved.LISTENER_RECONNECTED` says that notifications may have
 * been missed while a connection was down.
 *
 * @example
 * ```ts
 * import { Reserved, type Wake } from "@alkstore/alkstore";
 *
 * function isGap(wake: Wake): boolean {
 *   return wake.channel === Reserved.LISTENER_RECONNECTED;
 * }
 * console.log(isGap({ channel: "orders" }));
 * ```
 */
export const Reserved: {
  /** The prefix no name of the five kinds may have. */
  readonly PREFIX: "__alkstore_";
  /** The channel of the wake every receiver gets after a gap in the notifications. */
  readonly LISTENER_RECONNECTED: "__alkstore_listener_reconnected__";
} = {
  PREFIX: "__alkstore_",
  LISTENER_RECONNECTED: "__alkstore_listener_reconnected__",
};

/** The kinds of name that carry the reserved prefix rule. */
export type NameKind = "channel" | "stream" | "queue" | "lock" | "outbox";

/** The kinds of identifier that are local to a caller, so no prefix is reserved in them. */
export type LabelKind = "consumer" | "worker" | "owner" | "key";

const MAX_BYTES = 1_000;
const encoder = new TextEncoder();

/**
 * Checks a name of one of the five kinds and returns it.
 * `operation` starts the message: `Cannot enqueue`.
 */
export function checkName(kind: NameKind, name: unknown, operation: string): string {
  const text = checkLabel(kind, name, operation);
  if (text.startsWith(Reserved.PREFIX)) throw new ReservedNameError(operation, text);
  return text;
}

/** Checks a consumer, worker, owner or key and returns it. */
export function checkLabel(
  kind: NameKind | LabelKind,
  name: unknown,
  operation: string,
): string {
  if (typeof name !== "string") {
    throw new TypeError(`${operation}: the ${kind} must be a string, got ${describe(name)}`);
  }
  if (name === "") throw new InvalidNameError(operation, name, `a ${kind} must not be empty`);
  // A UTF-16 unit takes at most three bytes: short names need no counting.
  if (name.length * 3 > MAX_BYTES) {
    const bytes = name.length > MAX_BYTES ? name.length : encoder.encode(name).length;
    if (bytes > MAX_BYTES) {
      throw new InvalidNameError(
        operation,
        name,
        `a ${kind} has at most ${MAX_BYTES} bytes of UTF-8`,
      );
    }
  }
  // One driver cuts text at U+0000, two turn a lone surrogate into U+FFFD.
  if (name.includes("\0")) {
    throw new InvalidNameError(operation, name, `a ${kind} must not hold U+0000`);
  }
  if (!name.isWellFormed()) {
    throw new InvalidNameError(operation, name, `a ${kind} must be well-formed Unicode`);
  }
  return name;
}

/** What a value is, for a message: never its whole content. */
export function describe(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return `an object (${value.constructor?.name ?? "no prototype"})`;
  return value === undefined ? "undefined" : `a ${typeof value}`;
}
