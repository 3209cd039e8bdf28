/** Mistakes a call may be made with: wrong values, and the calls that have to refuse them. */

import type {
  EventReceiver,
  Job,
  JoinedTx,
  Lock,
  Outbox,
  Queue,
  Store,
  Stream,
  WakeReceiver,
  WorkerHandle,
} from "../../mod.ts";
import { type ErrorClass, fromJavaScript } from "./refusals.ts";

/** One of everything. */
export interface Scene {
  readonly store: Store<unknown>;
  readonly queue: Queue;
  readonly stream: Stream;
  readonly outbox: Outbox;
  /** Claimed from the queue. */
  readonly job: Job;
  readonly lock: Lock;
  readonly wakes: WakeReceiver;
  readonly events: EventReceiver;
  readonly worker: WorkerHandle;
  readonly projection: WorkerHandle;
  /** Only where a test brings one. */
  readonly tx: JoinedTx;
}

/** A value, the class of the error it meets, and what the message calls it. */
export type Refused = readonly [value: unknown, error: ErrorClass, called: string];

/** One argument or option of a call. */
export interface Argument {
  /** What the message calls it. */
  readonly name: string;
  /** What is refused, in the name of the test. */
  readonly phrase: string;
  readonly refuses: readonly Refused[];
  readonly pass: (scene: Scene, value: never) => unknown;
}

/** A call and its arguments. */
export interface Call {
  readonly call: string;
  /** What its messages start with. */
  readonly says: string;
  readonly throws?: boolean;
  readonly arguments: readonly Argument[];
}

/** Makes one of everything, with rows to lose. */
export async function openScene(store: Store<unknown>, lockName = "lock"): Promise<Scene> {
  const [queue, stream, outbox] = [
    store.queue("jobs"),
    store.stream("orders"),
    store.outbox("mail"),
  ];
  await queue.enqueue("claimed");
  await outbox.enqueue("waiting");
  await stream.publish("first");
  const [job, lock] = [
    await queue.claimOne("worker"),
    await store.tryLock(lockName, "owner", 60_000),
  ];
  if (job === undefined || lock === undefined) throw new Error("The scene is not complete");
  return {
    store,
    queue,
    stream,
    outbox,
    job,
    lock,
    wakes: await store.listen("orders"),
    events: await stream.subscribe("billing"),
    worker: store.queue("idle").work(() => {}),
    projection: store.stream("idle").process("totals", () => {}),
    tx: fromJavaScript(undefined),
  };
}

export const NO_NUMBERS: readonly Refused[] = [
  ["5", TypeError, '"5"'],
  [null, TypeError, "null"],
  [true, TypeError, "true"],
  [5n, TypeError, "5n"],
  [new Date(0), TypeError, "Date"],
];

export const NOT_FINITE: readonly Refused[] = [
  [NaN, RangeError, "NaN"],
  [-1, RangeError, "-1"],
  [-0.5, RangeError, "-0.5"],
  [-Infinity, RangeError, "-Infinity"],
];

/** A duration that may be `Infinity`: it ends a wait. */
export const PATIENCE: readonly Refused[] = [...NO_NUMBERS, ...NOT_FINITE];

export const DURATION: readonly Refused[] = [
  ...PATIENCE,
  [Infinity, RangeError, "Infinity"],
  [1e20, RangeError, "100000000000000000000"],
];

/** A duration whose end is stored: the whole of the time from 1970 to 9999 ends past it. */
export const STORED_DURATION: readonly Refused[] = [
  ...DURATION,
  [253_402_300_799_999, RangeError, "253402300799999"],
];

export const LIFETIME: readonly Refused[] = [...STORED_DURATION, [0, RangeError, "0"]];

/** Whole numbers of at least 0. */
export const OFFSET: readonly Refused[] = [
  ...NO_NUMBERS,
  [-1, RangeError, "-1"],
  [1.5, RangeError, "1.5"],
  [NaN, RangeError, "NaN"],
  [Infinity, RangeError, "Infinity"],
  [2 ** 53, RangeError, "9007199254740992"],
];

export const COUNT: readonly Refused[] = [...OFFSET, [0, RangeError, "0"]];

export const PRIORITY: readonly Refused[] = [
  ...NO_NUMBERS,
  [2 ** 31, RangeError, "2147483648"],
  [-(2 ** 31) - 1, RangeError, "-2147483649"],
  [1.5, RangeError, "1.5"],
  [NaN, RangeError, "NaN"],
  [Infinity, RangeError, "Infinity"],
];

export const INSTANT: readonly Refused[] = [
  [5, TypeError, "5"],
  ["2030-01-01", TypeError, '"2030-01-01"'],
  [null, TypeError, "null"],
  [new Date(NaN), RangeError, "Invalid Date"],
  [new Date(253_402_300_800_000), RangeError, "10000"],
];

export const NO_OBJECT: readonly Refused[] = [
  [5, TypeError, "5"],
  ["x", TypeError, '"x"'],
  [null, TypeError, "null"],
  [[], TypeError, "array"],
  [{ nope: 1 }, TypeError, '"nope"'],
];

export const NO_FUNCTION: readonly Refused[] = [
  [undefined, TypeError, "undefined"],
  [null, TypeError, "null"],
  [{}, TypeError, "object"],
  ["x", TypeError, '"x"'],
];

export const NO_ARRAY: readonly Refused[] = [
  [undefined, TypeError, "undefined"],
  [null, TypeError, "null"],
  [{}, TypeError, "object"],
  ["ab", TypeError, '"ab"'],
];

export const NO_SIGNAL: readonly Refused[] = [
  [5, TypeError, "5"],
  [null, TypeError, "null"],
  [{ aborted: true }, TypeError, "object"],
];

export const NO_CHOICE: readonly Refused[] = [
  ["x", TypeError, '"x"'],
  [1, TypeError, "1"],
  [null, TypeError, "null"],
];

export const NO_EVENTS: readonly Refused[] = [
  [[undefined], TypeError, "event"],
  [[null], TypeError, "null"],
  [["x"], TypeError, '"x"'],
  [[{ payload: 1, nope: 1 }], TypeError, '"nope"'],
];

export const NO_JOB: readonly Refused[] = [
  [undefined, TypeError, "undefined"],
  [null, TypeError, "null"],
  [7, TypeError, "7"],
  [{ id: 1 }, TypeError, "object"],
];

/** One argument and what it refuses. */
export function argument(
  name: string,
  refuses: readonly Refused[],
  pass: (scene: Scene, value: never) => unknown,
  phrase: string = `a bad ${name}`,
): Argument {
  return { name, phrase, refuses, pass };
}

/** The options object of a call. */
export function options(pass: (scene: Scene, value: never) => unknown): Argument {
  return argument("option", NO_OBJECT, pass, "unknown options and what is no object");
}

/** The options of an enqueue, whichever call takes them. */
export function enqueueOptions(send: (scene: Scene, opts: never) => unknown): Argument[] {
  const option = (name: string, refuses: readonly Refused[]) =>
    argument(name, refuses, (scene, value) => send(scene, fromJavaScript({ [name]: value })));
  const both = (scene: Scene, delay: never) =>
    send(scene, fromJavaScript({ delay, runAt: new Date(4_000_000_000_000) }));
  const late = (scene: Scene, expires: never) =>
    send(scene, fromJavaScript({ expires, delay: 2_000 }));
  const later = (scene: Scene, expires: never) =>
    send(scene, fromJavaScript({ expires, runAt: new Date(4_000_000_000_000) }));
  return [
    options(send),
    option("delay", STORED_DURATION),
    option("runAt", INSTANT),
    option("priority", PRIORITY),
    option("maxAttempts", COUNT),
    option("expires", LIFETIME),
    argument(
      "delay or runAt",
      [[0, TypeError, "not both"], [5, TypeError, "not both"]],
      both,
      "delay and runAt together",
    ),
    argument(
      "expire",
      [[1, RangeError, "1"], [1_999, RangeError, "1999"], [2_000, RangeError, "2000"]],
      late,
      "an expiry before the delay is over",
    ),
    argument("expire", [[60_000, RangeError, "60000"]], later, "an expiry before runAt"),
  ];
}
