import {
  argument,
  type Call,
  COUNT,
  DURATION,
  enqueueOptions,
  LIFETIME,
  NO_ARRAY,
  NO_CHOICE,
  NO_FUNCTION,
  NO_JOB,
  NO_SIGNAL,
  OFFSET,
  options,
  PATIENCE,
  STORED_DURATION,
} from "./mistakes.ts";

/** The calls of queues, outboxes, jobs and workers. */
export const QUEUE_CALLS: readonly Call[] = [
  {
    call: "queue.enqueue()",
    says: 'Cannot enqueue to queue "jobs"',
    arguments: enqueueOptions(({ queue }, opts) => queue.enqueue("x", opts)),
  },
  {
    call: "queue.enqueueMany()",
    says: 'Cannot enqueue to queue "jobs"',
    arguments: [
      ...enqueueOptions(({ queue }, opts) => queue.enqueueMany(["x", "y"], opts)),
      argument(
        "option",
        [[{ nope: 1 }, TypeError, '"nope"']],
        ({ queue }, opts) => queue.enqueueMany([], opts),
        "unknown options without a payload too",
      ),
      argument("payloads", NO_ARRAY, ({ queue }, payloads) => queue.enqueueMany(payloads)),
    ],
  },
  {
    call: "outbox.enqueue()",
    says: 'Cannot enqueue to outbox "mail"',
    arguments: enqueueOptions(({ outbox }, opts) => outbox.enqueue("x", opts)),
  },
  {
    call: "queue.claimBatch()",
    says: 'Cannot claim from queue "jobs"',
    arguments: [argument("limit", COUNT, ({ queue }, limit) => queue.claimBatch("worker", limit))],
  },
  {
    call: "queue.ackBatch()",
    says: 'Cannot ack jobs of queue "jobs"',
    arguments: [
      argument("jobs", NO_ARRAY, ({ queue }, jobs) => queue.ackBatch(jobs)),
      argument(
        "job",
        NO_JOB,
        ({ queue, job }, other) => queue.ackBatch([job, other]),
        "what is no job",
      ),
    ],
  },
  ...(["queue", "outbox"] as const).flatMap((kind): Call[] => {
    const handle = kind === "queue" ? `queue "jobs"` : `outbox "mail"`;
    return [
      {
        call: `${kind}.getJob()`,
        says: `Cannot get a job of ${handle}`,
        arguments: [argument("id", OFFSET, (scene, id) => scene[kind].getJob(id))],
      },
      {
        call: `${kind}.cancel()`,
        says: `Cannot cancel a job of ${handle}`,
        arguments: [argument("id", OFFSET, (scene, id) => scene[kind].cancel(id))],
      },
      {
        call: `${kind}.requeue()`,
        says: `Cannot requeue a job of ${handle}`,
        arguments: [argument("id", OFFSET, (scene, id) => scene[kind].requeue(id))],
      },
      {
        call: `${kind}.deadJobs()`,
        says: `Cannot read dead jobs of ${handle}`,
        arguments: [
          options((scene, options) => scene[kind].deadJobs(options)),
          argument("after", OFFSET, (scene, after) => scene[kind].deadJobs({ after })),
          argument("limit", COUNT, (scene, limit) => scene[kind].deadJobs({ limit })),
        ],
      },
      {
        call: `${kind}.purgeDead()`,
        says: `Cannot purge ${handle}`,
        arguments: [
          options((scene, options) => scene[kind].purgeDead(options)),
          argument("age", DURATION, (scene, age) => scene[kind].purgeDead({ age })),
        ],
      },
    ];
  }),
  {
    call: "queue.work()",
    says: 'Cannot work queue "jobs"',
    throws: true,
    arguments: [
      argument("handler", NO_FUNCTION, ({ queue }, handler) => queue.work(handler)),
      options(({ queue }, options) => queue.work(() => {}, options)),
      argument(
        "concurrency",
        COUNT,
        ({ queue }, concurrency) => queue.work(() => {}, { concurrency }),
      ),
      argument("tx", NO_CHOICE, ({ queue }, tx) => queue.work(() => {}, { tx })),
      argument("signal", NO_SIGNAL, ({ queue }, signal) => queue.work(() => {}, { signal })),
    ],
  },
  {
    call: "outbox.runOnce()",
    says: 'Cannot run outbox "mail"',
    arguments: [
      argument("deliver", NO_FUNCTION, ({ outbox }, deliver) => outbox.runOnce("worker", deliver)),
    ],
  },
  {
    call: "outbox.run()",
    says: "Cannot",
    throws: true,
    arguments: [
      argument("deliver", NO_FUNCTION, ({ outbox }, deliver) => outbox.run(deliver)),
      options(({ outbox }, options) => outbox.run(() => {}, options)),
      argument(
        "option",
        [[{ tx: true }, TypeError, '"tx"']],
        ({ outbox }, options) => outbox.run(() => {}, options),
        "to run deliveries in a transaction",
      ),
      argument(
        "concurrency",
        COUNT,
        ({ outbox }, concurrency) => outbox.run(() => {}, { concurrency }),
      ),
      argument("signal", NO_SIGNAL, ({ outbox }, signal) => outbox.run(() => {}, { signal })),
    ],
  },
  ...(["worker", "projection"] as const).map((kind): Call => ({
    call: `${kind}.stop()`,
    says: `Cannot stop ${kind}`,
    arguments: [
      options((scene, options) => scene[kind].stop(options)),
      argument("drain", PATIENCE, (scene, drain) => scene[kind].stop({ drain })),
    ],
  })),
  {
    call: "job.retry()",
    says: "Cannot retry job",
    arguments: [
      options(({ job }, options) => job.retry(options)),
      argument("delay", STORED_DURATION, ({ job }, delay) => job.retry({ delay })),
    ],
  },
  {
    call: "job.heartbeat()",
    says: "Cannot extend job",
    arguments: [argument("extend", LIFETIME, ({ job }, extend) => job.heartbeat(extend))],
  },
];
