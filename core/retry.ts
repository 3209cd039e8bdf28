import { describe } from "./names.ts";
import { checkDuration, MAX_INSTANT, orDefault } from "./options.ts";

/**
 * How long a failed job waits before its next attempt. Stamped on the job when it is enqueued, so
 * that recovery never needs the settings of a handler.
 *
 * The delay after attempt `n` is `base` (constant), `base × n` (linear) or `base × 2^(n-1)`
 * (exponential), at most `cap`, spread by `jitter`.
 *
 * @example
 * ```ts
 * import type { Backoff } from "@alkstore/alkstore";
 *
 * const gentle: Backoff = { kind: "linear", base: 1_000, cap: 60_000, jitter: 0 };
 * console.log(gentle);
 * ```
 */
export interface Backoff {
  /** The shape of the curve. @default {"exponential"} */
  readonly kind?: "exponential" | "linear" | "constant";
  /** Milliseconds after the first failed attempt. @default {5_000} */
  readonly base?: number;
  /** The longest delay, in milliseconds. @default {3_600_000} */
  readonly cap?: number;
  /** The share of the delay that is random, 0 to 1: 0.1 spreads it over ±10 %. @default {0.1} */
  readonly jitter?: number;
}

/** The curve of queues that set none. */
export const DEFAULT_BACKOFF: Required<Backoff> = {
  kind: "exponential",
  base: 5_000,
  cap: 3_600_000,
  jitter: 0.1,
};

/** The curve every outbox has (ADR-010 §3 as cited by ADR-014): base 5 s, no jitter. */
export const OUTBOX_BACKOFF: Required<Backoff> = { ...DEFAULT_BACKOFF, jitter: 0 };

/** A delay of whole milliseconds after `attempt` failed attempts; `random` gives 0 to 1. */
export function backoffDelay(
  backoff: Required<Backoff>,
  attempt: number,
  random: () => number = Math.random,
): number {
  const { kind, base, cap, jitter } = backoff;
  // Past 2^52 the power says nothing a cap would not: keep it finite.
  const power = Math.min(Math.max(attempt, 1), 53);
  const raw = kind === "constant"
    ? base
    : kind === "linear"
    ? base * attempt
    : base * 2 ** (power - 1);
  const spread = 1 + jitter * (2 * random() - 1);
  const delay = Math.round(Math.min(Math.min(raw, cap) * spread, cap));
  // A stamped curve may outlive the calendar.
  return Math.min(delay, MAX_INSTANT - Date.now());
}

/** Checks a backoff option and fills in its defaults. A number is the base. */
export function checkBackoff(value: unknown, operation: string): Required<Backoff> {
  if (value === undefined) return DEFAULT_BACKOFF;
  if (typeof value === "number") return checkBackoff({ base: value }, operation);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(
      `${operation}: backoff must be an object or a number, got ${describe(value)}`,
    );
  }
  for (const field of Object.keys(value)) {
    if (!Object.hasOwn(DEFAULT_BACKOFF, field)) {
      throw new TypeError(`${operation}: unknown backoff option "${field}"`);
    }
  }
  const given: Backoff = value;
  const backoff: Required<Backoff> = {
    kind: orDefault(given.kind, DEFAULT_BACKOFF.kind),
    base: orDefault(given.base, DEFAULT_BACKOFF.base),
    cap: orDefault(given.cap, DEFAULT_BACKOFF.cap),
    jitter: orDefault(given.jitter, DEFAULT_BACKOFF.jitter),
  };
  if (!["exponential", "linear", "constant"].includes(backoff.kind)) {
    throw new TypeError(
      `${operation}: backoff.kind must be "exponential", "linear" or "constant", got ${
        describe(backoff.kind)
      }`,
    );
  }
  checkDuration(backoff.base, "backoff.base", operation);
  checkDuration(backoff.cap, "backoff.cap", operation);
  const jitter: unknown = backoff.jitter;
  if (typeof jitter !== "number") {
    throw new TypeError(`${operation}: backoff.jitter must be a number, got ${describe(jitter)}`);
  }
  if (!(jitter >= 0 && jitter <= 1)) {
    throw new RangeError(`${operation}: backoff.jitter must be between 0 and 1, got ${jitter}`);
  }
  return backoff;
}

/** The one text in which a backoff is stamped on a job row: opaque to the engines. */
export function encodeBackoff(backoff: Required<Backoff>): string {
  return `${backoff.kind} ${backoff.base} ${backoff.cap} ${backoff.jitter}`;
}

/** Reads a stamped backoff; a text nobody of us wrote falls back to the default curve. */
export function decodeBackoff(text: string): Required<Backoff> {
  const [kind, base, cap, jitter] = text.split(" ");
  const backoff = { kind, base: Number(base), cap: Number(cap), jitter: Number(jitter) };
  try {
    return checkBackoff(backoff, "Cannot read backoff");
  } catch {
    return DEFAULT_BACKOFF;
  }
}
