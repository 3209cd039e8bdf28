import {
  argument,
  type Call,
  COUNT,
  DURATION,
  LIFETIME,
  NO_CHOICE,
  NO_FUNCTION,
  NO_OBJECT,
  NO_SIGNAL,
  NOT_FINITE,
  OFFSET,
  options,
  PATIENCE,
} from "./mistakes.ts";

/** The calls of the store, of locks and of wake receivers. */
export const STORE_CALLS: readonly Call[] = [
  {
    call: "store.queue()",
    says: "Cannot open queue",
    throws: true,
    arguments: [
      options(({ store }, opts) => store.queue("q", opts)),
      argument("visibility", LIFETIME, ({ store }, visibility) => store.queue("q", { visibility })),
      argument("maxAttempts", COUNT, ({ store }, maxAttempts) => store.queue("q", { maxAttempts })),
      argument(
        "backoff",
        [...NOT_FINITE, [Infinity, RangeError, "Infinity"], ...NO_OBJECT.slice(1)],
        ({ store }, backoff) => store.queue("q", { backoff }),
      ),
      argument("kind", NO_CHOICE, ({ store }, kind) => store.queue("q", { backoff: { kind } })),
      argument("base", DURATION, ({ store }, base) => store.queue("q", { backoff: { base } })),
      argument("cap", DURATION, ({ store }, cap) => store.queue("q", { backoff: { cap } })),
      argument(
        "jitter",
        [...PATIENCE, [1.01, RangeError, "1.01"]],
        ({ store }, jitter) => store.queue("q", { backoff: { jitter } }),
      ),
    ],
  },
  {
    call: "store.stream()",
    says: "Cannot open stream",
    throws: true,
    arguments: [options(({ store }, opts) => store.stream("s", opts))],
  },
  {
    call: "store.outbox()",
    says: "Cannot open outbox",
    throws: true,
    arguments: [
      options(({ store }, opts) => store.outbox("o", opts)),
      argument(
        "option",
        [[{ visibility: 1 }, TypeError, '"visibility"']],
        ({ store }, opts) => store.outbox("o", opts),
        "the settings of a queue",
      ),
    ],
  },
  {
    call: "wakeReceiver.recv()",
    says: "Cannot receive",
    arguments: [
      options(({ wakes }, options) => wakes.recv(options)),
      argument("signal", NO_SIGNAL, ({ wakes }, signal) => wakes.recv({ signal })),
    ],
  },
  {
    call: "wakeReceiver.recvTimeout()",
    says: "Cannot receive",
    arguments: [
      argument("timeout", PATIENCE, ({ wakes }, timeout) => wakes.recvTimeout(timeout)),
      options(({ wakes }, options) => wakes.recvTimeout(0, options)),
      argument("signal", NO_SIGNAL, ({ wakes }, signal) => wakes.recvTimeout(0, { signal })),
    ],
  },
  {
    call: "store.tryLock()",
    says: "Cannot lock",
    arguments: [argument("ttl", LIFETIME, ({ store }, ttl) => store.tryLock("free", "me", ttl))],
  },
  {
    call: "lock.renew()",
    says: 'Cannot renew lock "lock"',
    arguments: [argument("ttl", LIFETIME, ({ lock }, ttl) => lock.renew(ttl))],
  },
  {
    call: "store.beginTx()",
    says: "Cannot begin a transaction",
    arguments: [
      options(({ store }, options) => store.beginTx(options)),
      argument("timeout", PATIENCE, ({ store }, timeout) => store.beginTx({ timeout })),
      argument("signal", NO_SIGNAL, ({ store }, signal) => store.beginTx({ signal })),
    ],
  },
  {
    call: "store.transaction()",
    says: "Cannot run a transaction",
    arguments: [
      argument("work", NO_FUNCTION, ({ store }, work) => store.transaction(work)),
      options(({ store }, options) => store.transaction(() => {}, options)),
      argument("retries", OFFSET, ({ store }, retries) => store.transaction(() => {}, { retries })),
      argument(
        "timeout",
        PATIENCE,
        ({ store }, timeout) => store.transaction(() => {}, { timeout }),
      ),
      argument("signal", NO_SIGNAL, ({ store }, signal) => store.transaction(() => {}, { signal })),
    ],
  },
  {
    call: "store.joinTx()",
    says: "Cannot join a transaction",
    arguments: [
      argument(
        "connection",
        [[undefined, TypeError, "undefined"], [null, TypeError, "null"], [5, TypeError, "5"], [
          {},
          TypeError,
          "",
        ], [() => {}, TypeError, ""]],
        ({ store }, connection) => store.joinTx(connection),
      ),
    ],
  },
  {
    call: "store.close()",
    says: "Cannot close",
    arguments: [
      options(({ store }, options) => store.close(options)),
      argument("drain", PATIENCE, ({ store }, drain) => store.close({ drain })),
    ],
  },
  {
    call: "store.onEvent()",
    says: "Cannot listen to events",
    throws: true,
    arguments: [
      argument("listener", NO_FUNCTION, ({ store }, listener) => store.onEvent(listener)),
    ],
  },
];
