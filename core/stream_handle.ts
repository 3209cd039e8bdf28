import type { Context } from "./context.ts";
import type { EventRow, NewEvent } from "./engine.ts";
import { openEventReceiver } from "./event_receiver.ts";
import { checkLabel, describe } from "./names.ts";
import { checkCount, checkFunction, checkOffset, checkOptions } from "./options.ts";
import { startProjection } from "./projection.ts";
import {
  checkSchema,
  decodePayload,
  decodePayloadNow,
  encodePayload,
  encodePayloads,
  type SchemaOutput,
  type StandardSchema,
} from "./schema.ts";
import type {
  EventInput,
  EventReceiver,
  ProcessOptions,
  Stream,
  StreamEvent,
  StreamInfo,
} from "./stream.ts";
import type { JoinedTx } from "./tx.ts";
import { Wording } from "./wording.ts";
import type { WorkerHandle } from "./worker.ts";

/** How many events one step of a trim deletes: each step is one transaction. */
const STEP = 1_000;

/** The {@linkcode Stream} of the caller. */
export class StreamHandle<Input, Output, Connection = unknown>
  implements Stream<Input, Output, Connection> {
  readonly name: string;
  readonly context: Context;
  readonly schema: StandardSchema | undefined;
  readonly #wording: Wording;

  /** Made by the store, from checked settings. */
  constructor(context: Context, name: string, schema: StandardSchema | undefined) {
    this.context = context;
    this.name = name;
    this.schema = schema;
    this.#wording = new Wording("stream", name);
  }

  async publish(payload: Input): Promise<number> {
    const operation = this.operation("publish to");
    const session = this.context.writer(operation, "use tx.publishTx");
    const encoded = encodePayload(this.schema, payload, operation);
    const text = typeof encoded === "string" ? encoded : await encoded;
    const offsets = await session.publish(this.name, [{ key: undefined, payload: text }]);
    return offsets[0]!;
  }

  async publishWithKey(key: string, payload: Input): Promise<number> {
    const operation = this.operation("publish to");
    const session = this.context.writer(operation, "use tx.publishWithKeyTx");
    checkLabel("key", key, operation);
    const text = await encodePayload(this.schema, payload, operation);
    const offsets = await session.publish(this.name, [{ key, payload: text }]);
    return offsets[0]!;
  }

  async publishMany(events: readonly EventInput<Input>[]): Promise<number[]> {
    const operation = this.operation("publish to");
    const session = this.context.writer(operation, "use tx.publishManyTx");
    const encoded = await encodeEvents(this.schema, events, operation);
    return encoded.length === 0 ? [] : await session.publish(this.name, encoded);
  }

  async readSince(offset: number, limit: number): Promise<StreamEvent<Output>[]> {
    const operation = this.operation("read");
    const session = this.context.reader(operation);
    checkOffset(offset, "offset", operation);
    checkCount(limit, "limit", 1, operation);
    const { events } = await session.readEvents(this.name, offset, limit);
    return events.map((row) => this.eventOf(row));
  }

  async readFromConsumer(consumer: string, limit: number): Promise<StreamEvent<Output>[]> {
    const operation = this.operation("read");
    checkCount(limit, "limit", 1, operation);
    return await this.readSince(await this.getOffset(consumer), limit);
  }

  async saveOffset(consumer: string, offset: number): Promise<boolean> {
    const operation = this.operation("save an offset of");
    const session = this.context.writer(operation, "use tx.saveOffsetTx");
    checkLabel("consumer", consumer, operation);
    checkOffset(offset, "offset", operation);
    const saving = await session.saveOffset(this.name, consumer, offset, undefined);
    if (saving === "beyond") throw beyondHead(operation, offset);
    return saving === "advanced";
  }

  async getOffset(consumer: string): Promise<number> {
    const operation = this.operation("get an offset of");
    const session = this.context.reader(operation);
    return await session.savedOffset(this.name, checkLabel("consumer", consumer, operation));
  }

  async subscribe(consumer: string): Promise<EventReceiver<Output>> {
    const operation = this.operation("subscribe to");
    checkLabel("consumer", consumer, operation);
    this.context.assertOpen(operation);
    return await openEventReceiver(this, consumer);
  }

  async trimTo(offset: number): Promise<number> {
    const operation = this.operation("trim");
    checkOffset(offset, "offset", operation);
    let total = 0;
    while (true) {
      const session = this.context.writer(operation, "trim after it");
      const deleted = await session.trim(this.name, offset, STEP);
      total += deleted;
      if (deleted < STEP) return total;
    }
  }

  process(
    consumer: string,
    handler: (event: StreamEvent<Output>, tx: JoinedTx<Connection>) => unknown,
    options?: ProcessOptions,
  ): WorkerHandle {
    const operation = this.operation("process");
    checkLabel("consumer", consumer, operation);
    checkFunction(handler, "handler", operation);
    this.context.assertOpen(operation);
    // The core hands on the connection the engine gave and never looks at it.
    const run = handler as (event: StreamEvent<Output>, tx: JoinedTx) => unknown;
    return startProjection(this, consumer, run, options, operation);
  }

  async info(): Promise<StreamInfo> {
    return await this.context.reader(this.operation("read")).streamFacts(this.name);
  }

  async resetOffset(consumer: string, offset: number): Promise<void> {
    const operation = this.operation("reset an offset of");
    const session = this.context.writer(operation, "reset outside it");
    checkLabel("consumer", consumer, operation);
    checkOffset(offset, "offset", operation);
    const saving = await session.resetOffset(this.name, consumer, offset);
    if (saving === "beyond") throw beyondHead(operation, offset);
  }

  async dropConsumer(consumer: string): Promise<boolean> {
    const operation = this.operation("drop a consumer of");
    const session = this.context.writer(operation, "drop it outside");
    return await session.dropConsumer(this.name, checkLabel("consumer", consumer, operation));
  }

  /** `Cannot publish to stream "orders"`. */
  operation(verb: string): string {
    return this.#wording.cannot(verb);
  }

  /** A row as the caller sees it. */
  eventOf(row: EventRow): EventHandle<Output> {
    return new EventHandle<Output>(this.name, row, this.schema);
  }
}

/** An offset nobody has drawn yet would make a consumer skip what is still to come. */
export function beyondHead(operation: string, offset: number): RangeError {
  return new RangeError(`${operation}: offset ${offset} is above every offset published so far`);
}

/**
 * Encodes the events of one call, all before anything is written; a promise only where the schema is
 * asynchronous.
 */
export function encodeEvents(
  schema: StandardSchema | undefined,
  events: readonly EventInput<unknown>[],
  operation: string,
): NewEvent[] | Promise<NewEvent[]> {
  if (!Array.isArray(events)) {
    throw new TypeError(`${operation}: events must be an array, got ${describe(events)}`);
  }
  const keys: (string | undefined)[] = [];
  const payloads: unknown[] = [];
  for (const event of events) {
    if (event === undefined) throw new TypeError(`${operation}: an event must be an object`);
    checkOptions(event, ["key", "payload"], operation);
    keys.push(event.key === undefined ? undefined : checkLabel("key", event.key, operation));
    payloads.push(event.payload);
  }
  const pair = (texts: string[]) =>
    texts.map((payload, index): NewEvent => ({ key: keys[index], payload }));
  const encoded = encodePayloads(schema, payloads, operation);
  return encoded instanceof Promise ? encoded.then(pair) : pair(encoded);
}

/** The {@linkcode StreamEvent} of the caller. */
export class EventHandle<T> implements StreamEvent<T> {
  readonly stream: string;
  readonly #row: EventRow;
  readonly #schema: StandardSchema | undefined;
  #payload: (() => unknown) | undefined;

  /** Made by the stream. */
  constructor(stream: string, row: EventRow, schema: StandardSchema | undefined) {
    this.stream = stream;
    this.#row = row;
    this.#schema = schema;
  }

  get offset(): number {
    return this.#row.offset;
  }
  get key(): string | undefined {
    return this.#row.key;
  }
  get createdAt(): Date {
    return new Date(this.#row.createdAt);
  }

  get payload(): T {
    if (this.#payload === undefined) {
      const value = this.#decode(this.#schema);
      this.#payload = () => value;
    }
    return this.#payload() as T;
  }

  /** Decodes the payload through an asynchronous schema too; a fault is thrown where it is read. */
  async load(): Promise<void> {
    try {
      const value = await decodePayload(this.#schema, this.#row.payload, this.#operation);
      this.#payload = () => value;
    } catch (error) {
      this.#payload = () => {
        throw error;
      };
    }
  }

  payloadAs<U = T>(): U;
  payloadAs<S extends StandardSchema>(schema: S): SchemaOutput<S>;
  payloadAs(schema?: StandardSchema): unknown {
    return this.#decode(checkSchema(schema, this.#operation));
  }

  #decode(schema: StandardSchema | undefined): unknown {
    return decodePayloadNow(schema, this.#row.payload, this.#operation);
  }

  get #operation(): string {
    return `Cannot read event ${this.offset} of stream ${JSON.stringify(this.stream)}`;
  }
}
