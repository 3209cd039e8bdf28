import {
  argument,
  type Call,
  COUNT,
  NO_ARRAY,
  NO_EVENTS,
  NO_FUNCTION,
  NO_SIGNAL,
  OFFSET,
  options,
} from "./mistakes.ts";

/** The calls of streams and their receivers. */
export const STREAM_CALLS: readonly Call[] = [
  {
    call: "stream.publishMany()",
    says: 'Cannot publish to stream "orders"',
    arguments: [
      argument("events", NO_ARRAY, ({ stream }, events) => stream.publishMany(events)),
      argument(
        "",
        NO_EVENTS,
        ({ stream }, events: never[]) => stream.publishMany([{ payload: 1 }, ...events]),
        "what is no event",
      ),
    ],
  },
  ...(["stream", "events"] as const).map((kind): Call => ({
    call: `${kind === "stream" ? "stream" : "receiver"}.readSince()`,
    says: 'Cannot read stream "orders"',
    arguments: [
      argument("offset", OFFSET, (scene, offset) => scene[kind].readSince(offset, 1)),
      argument("limit", COUNT, (scene, limit) => scene[kind].readSince(0, limit)),
    ],
  })),
  {
    call: "stream.readFromConsumer()",
    says: 'Cannot read stream "orders"',
    arguments: [
      argument("limit", COUNT, ({ stream }, limit) => stream.readFromConsumer("billing", limit)),
    ],
  },
  {
    call: "stream.saveOffset()",
    says: 'Cannot save an offset of stream "orders"',
    arguments: [
      argument(
        "offset",
        [...OFFSET, [2 ** 53 - 1, RangeError, "9007199254740991"]],
        ({ stream }, offset) => stream.saveOffset("billing", offset),
      ),
    ],
  },
  {
    call: "stream.resetOffset()",
    says: 'Cannot reset an offset of stream "orders"',
    arguments: [
      argument(
        "offset",
        [...OFFSET, [2 ** 53 - 1, RangeError, "9007199254740991"]],
        ({ stream }, offset) => stream.resetOffset("billing", offset),
      ),
    ],
  },
  {
    call: "stream.trimTo()",
    says: 'Cannot trim stream "orders"',
    arguments: [argument("offset", OFFSET, ({ stream }, offset) => stream.trimTo(offset))],
  },
  {
    call: "stream.process()",
    says: 'Cannot process stream "orders"',
    throws: true,
    arguments: [
      argument("handler", NO_FUNCTION, ({ stream }, handler) => stream.process("c", handler)),
      options(({ stream }, options) => stream.process("c", () => {}, options)),
      argument("batch", COUNT, ({ stream }, batch) => stream.process("c", () => {}, { batch })),
      argument(
        "signal",
        NO_SIGNAL,
        ({ stream }, signal) => stream.process("c", () => {}, { signal }),
      ),
    ],
  },
  {
    call: "eventReceiver.recv()",
    says: 'Cannot receive from stream "orders"',
    arguments: [
      options(({ events }, options) => events.recv(options)),
      argument("signal", NO_SIGNAL, ({ events }, signal) => events.recv({ signal })),
    ],
  },
];
