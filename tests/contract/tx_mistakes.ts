import {
  argument,
  type Call,
  enqueueOptions,
  NO_ARRAY,
  NO_CHOICE,
  NO_EVENTS,
  NO_JOB,
  OFFSET,
  options,
  STORED_DURATION,
} from "./mistakes.ts";

/** The calls of a transaction. */
export const TX_CALLS: readonly Call[] = [
  {
    call: "tx.enqueueTx()",
    says: 'Cannot enqueue to queue "jobs"',
    arguments: enqueueOptions(({ tx, queue }, opts) => tx.enqueueTx(queue, opts, "x")),
  },
  {
    call: "tx.enqueueManyTx()",
    says: 'Cannot enqueue to queue "jobs"',
    arguments: [
      ...enqueueOptions(({ tx }, opts) => tx.enqueueManyTx("jobs", opts, ["x", "y"])),
      argument("payloads", NO_ARRAY, ({ tx }, payloads) => tx.enqueueManyTx("jobs", {}, payloads)),
    ],
  },
  {
    call: "tx.outboxEnqueueTx()",
    says: 'Cannot enqueue to outbox "mail"',
    arguments: enqueueOptions(({ tx }, opts) => tx.outboxEnqueueTx("mail", opts, "x")),
  },
  {
    call: "tx.publishManyTx()",
    says: 'Cannot publish to stream "orders"',
    arguments: [
      argument("events", NO_ARRAY, ({ tx }, events) => tx.publishManyTx("orders", events)),
      argument(
        "",
        NO_EVENTS,
        ({ tx }, events: never[]) => tx.publishManyTx("orders", [{ payload: 1 }, ...events]),
        "what is no event",
      ),
    ],
  },
  {
    call: "tx.saveOffsetTx()",
    says: 'Cannot save an offset of stream "orders"',
    arguments: [
      argument(
        "offset",
        [...OFFSET, [2 ** 53 - 1, RangeError, "9007199254740991"]],
        ({ tx }, offset) => tx.saveOffsetTx("orders", "billing", offset),
      ),
      options(({ tx }, opts) => tx.saveOffsetTx("orders", "c", 0, opts)),
      argument("from", OFFSET, ({ tx }, from) => tx.saveOffsetTx("orders", "c", 0, { from })),
      argument(
        "ifLost",
        NO_CHOICE,
        ({ tx }, ifLost) => tx.saveOffsetTx("orders", "c", 0, { ifLost }),
      ),
    ],
  },
  {
    call: "tx.ackTx()",
    says: "Cannot ack job",
    arguments: [
      argument("job", NO_JOB, ({ tx }, job) => tx.ackTx(job)),
      options(({ tx, job }, options) => tx.ackTx(job, options)),
      argument("ifLost", NO_CHOICE, ({ tx, job }, ifLost) => tx.ackTx(job, { ifLost })),
    ],
  },
  {
    call: "tx.retryTx()",
    says: "Cannot retry job",
    arguments: [
      argument("job", NO_JOB, ({ tx }, job) => tx.retryTx(job)),
      options(({ tx, job }, options) => tx.retryTx(job, options)),
      argument("delay", STORED_DURATION, ({ tx, job }, delay) => tx.retryTx(job, { delay })),
      argument("ifLost", NO_CHOICE, ({ tx, job }, ifLost) => tx.retryTx(job, { ifLost })),
    ],
  },
  {
    call: "tx.failTx()",
    says: "Cannot fail job",
    arguments: [
      argument("job", NO_JOB, ({ tx }, job) => tx.failTx(job)),
      options(({ tx, job }, options) => tx.failTx(job, "x", options)),
      argument("ifLost", NO_CHOICE, ({ tx, job }, ifLost) => tx.failTx(job, "x", { ifLost })),
    ],
  },
  {
    call: "tx.cancelTx()",
    says: 'Cannot cancel a job of queue "jobs"',
    arguments: [argument("id", OFFSET, ({ tx }, id) => tx.cancelTx("jobs", id))],
  },
  {
    call: "tx.assertLockTx()",
    says: "Cannot assert lock",
    arguments: [
      argument("lock", NO_JOB, ({ tx }, lock) => tx.assertLockTx(lock)),
      options(({ tx, lock }, options) => tx.assertLockTx(lock, options)),
      argument("ifLost", NO_CHOICE, ({ tx, lock }, ifLost) => tx.assertLockTx(lock, { ifLost })),
    ],
  },
];
