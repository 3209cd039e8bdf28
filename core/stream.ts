import type { Json } from "./json.ts";
import type { WaitOptions } from "./options.ts";
import type { SchemaOutput, StandardSchema } from "./schema.ts";
import type { JoinedTx } from "./tx.ts";
import type { WorkerHandle } from "./worker.ts";

/**
 * Settings of a stream handle.
 *
 * @example
 * ```ts
 * import type { StreamOpts } from "@alkstore/alkstore";
 *
 * const plain: StreamOpts = {};
 * console.log(plain);
 * ```
 */
export interface StreamOpts {
  /** Checks payloads on the way in and converts them on the way out. Not stored. */
  readonly schema?: StandardSchema;
}

/**
 * An event as it is read from a stream (ADR-008 §8, ADR-015 §3).
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const orders = store.stream<{ id: string }>("orders");
 * await orders.publishWithKey("o-1", { id: "o-1" });
 * for (const event of await orders.readSince(0, 10)) {
 *   console.log(event.offset, event.key, event.payload.id);
 * }
 * ```
 */
export interface StreamEvent<T = Json> {
  /** The event's place: greater than that of every event committed to the stream before it. */
  readonly offset: number;
  /** The name of the stream. */
  readonly stream: string;
  /** The key it was published with; it orders nothing by itself. */
  readonly key: string | undefined;
  /**
   * The payload, through the stream's schema where there is one. Decoded when it is first read:
   * throws `CodecError` when it cannot be.
   */
  readonly payload: T;
  /** When it was published, by the database's clock. */
  readonly createdAt: Date;
  /** The payload as a type you vouch for. Throws `CodecError` when it is not JSON. */
  payloadAs<U = T>(): U;
  /** The payload through a Standard Schema validator. Throws `CodecError` when it does not fit. */
  payloadAs<S extends StandardSchema>(schema: S): SchemaOutput<S>;
}

/**
 * An event to publish with others.
 *
 * @example
 * ```ts
 * import type { EventInput } from "@alkstore/alkstore";
 *
 * const placed: EventInput<{ id: string }> = { key: "o-1", payload: { id: "o-1" } };
 * console.log(placed);
 * ```
 */
export interface EventInput<T = Json> {
  /** What happened. */
  readonly payload: T;
  /** Carried along; non-empty where given. */
  readonly key?: string;
}

/**
 * Events that were trimmed away before a consumer had processed them.
 *
 * @example
 * ```ts
 * import type { MissedEvents } from "@alkstore/alkstore";
 *
 * const missed: MissedEvents = { from: 12, to: 40 };
 * console.log(`events from ${missed.from} to ${missed.to} are gone`);
 * ```
 */
export interface MissedEvents {
  /** The first offset that may be missing: the one after the consumer's saved offset. */
  readonly from: number;
  /** The last offset that was trimmed away. */
  readonly to: number;
}

/**
 * A stream at a glance.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 * import type { StreamInfo } from "@alkstore/alkstore";
 *
 * await using store = await openSqlite(":memory:");
 * const info: StreamInfo = await store.stream("orders").info();
 * console.log(info.head, info.consumers.length);
 * ```
 */
export interface StreamInfo {
  /** The highest offset ever published, 0 when there is none. */
  readonly head: number;
  /** The lowest offset that can still be read. */
  readonly first: number | undefined;
  /** Everybody who saved an offset. */
  readonly consumers: readonly {
    /** The consumer's name. */
    readonly name: string;
    /** The last offset it has processed. */
    readonly offset: number;
    /** How many events it has before it. */
    readonly lag: number;
  }[];
}

/**
 * How a projection runs.
 *
 * @example
 * ```ts
 * import type { ProcessOptions } from "@alkstore/alkstore";
 *
 * const inBatches: ProcessOptions = { batch: 100 };
 * console.log(inBatches);
 * ```
 */
export interface ProcessOptions {
  /**
   * How many events share a transaction at most. When one of them fails, all of them are rolled back
   * and handled again. @default {1}
   */
  readonly batch?: number;
  /** Stops the projection when aborted. */
  readonly signal?: AbortSignal;
}

/**
 * A durable, ordered log of events with explicit consumer offsets.
 *
 * No reader sees an offset and later a smaller one of the same stream. Offsets have gaps and never
 * restart.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const orders = store.stream<{ total: number }>("orders");
 * await orders.publish({ total: 12 });
 *
 * const events = await orders.readFromConsumer("billing", 100);
 * // … handle them …
 * await orders.saveOffset("billing", events.at(-1)?.offset ?? 0);
 * ```
 */
export interface Stream<Input = Json, Output = Input, Connection = unknown> {
  /** The stream's name. */
  readonly name: string;
  /** Appends an event and resolves with its offset once that is committed. */
  publish(payload: Input): Promise<number>;
  /** Appends an event that carries a key; an empty one is an `InvalidNameError`. */
  publishWithKey(key: string, payload: Input): Promise<number>;
  /** Appends events, all or none; their offsets, in the order given. */
  publishMany(events: readonly EventInput<Input>[]): Promise<number[]>;
  /** Up to `limit` events with an offset greater than `offset`, ascending. */
  readSince(offset: number, limit: number): Promise<StreamEvent<Output>[]>;
  /** Up to `limit` events after the offset the consumer has saved. */
  readFromConsumer(consumer: string, limit: number): Promise<StreamEvent<Output>[]>;
  /**
   * Saves the last offset a consumer has processed; whether that moved it forward. It never moves
   * back. Rejects with `RangeError` above the highest offset ever published.
   */
  saveOffset(consumer: string, offset: number): Promise<boolean>;
  /** The offset a consumer has saved, 0 when none. */
  getOffset(consumer: string): Promise<number>;
  /**
   * Opens a receiver at the consumer's saved offset; armed when the promise resolves. Two receivers
   * of one consumer both get everything.
   */
  subscribe(consumer: string): Promise<EventReceiver<Output>>;
  /** Deletes all events up to and including `offset`, whoever still needs them; how many. */
  trimTo(offset: number): Promise<number>;
  /**
   * Runs a projection: calls `handler` for each event in order, in a transaction that also moves the
   * consumer's offset. Its writes on `tx` happen effectively once, also when several processes run the
   * same consumer. A failing handler is called again, after growing delays, and reported to `onEvent`:
   * no event is skipped.
   */
  process(
    consumer: string,
    handler: (event: StreamEvent<Output>, tx: JoinedTx<Connection>) => unknown,
    options?: ProcessOptions,
  ): WorkerHandle;
  /** Head, first offset and consumers. */
  info(): Promise<StreamInfo>;
  /**
   * Sets a consumer's offset in either direction: the one rewind. Rejects with `RangeError` above the
   * highest offset ever published.
   */
  resetOffset(consumer: string, offset: number): Promise<void>;
  /** Forgets a consumer; whether there was one. */
  dropConsumer(consumer: string): Promise<boolean>;
}

/**
 * A subscription of a consumer to a stream. Nothing is saved by itself: only `saveOffset()` moves the
 * checkpoint (ADR-008 §8).
 *
 * Iterating it ends quietly after `close()` and throws `ClosedError` when the source died by itself.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const orders = store.stream<{ id: string }>("orders");
 * await using receiver = await orders.subscribe("billing");
 * await orders.publish({ id: "o-1" });
 *
 * const event = await receiver.recv();
 * console.log(event?.payload.id);
 * await receiver.saveOffset();
 * ```
 */
export interface EventReceiver<T = Json> extends AsyncIterable<StreamEvent<T>>, AsyncDisposable {
  /**
   * Waits for the next event; nothing once the receiver is closed. Concurrent calls are served in
   * order. Rides out an outage; another error rejects this call and moves nothing.
   */
  recv(options?: WaitOptions): Promise<StreamEvent<T> | undefined>;
  /** The next event if there is one now. Rejects with `ClosedError` when closed. */
  tryRecv(): Promise<StreamEvent<T> | undefined>;
  /** Reads events like `Stream.readSince`; moves nothing. */
  readSince(offset: number, limit: number): Promise<StreamEvent<T>[]>;
  /** Saves `offset()` as the consumer's checkpoint; whether that moved it forward. */
  saveOffset(): Promise<boolean>;
  /** The offset of the last event handed to the caller; at first the saved one. */
  offset(): number;
  /**
   * Events that were trimmed away before this receiver could hand them out, set before its first
   * event after the gap. Nothing for a consumer that has saved nothing yet.
   */
  readonly missed: MissedEvents | undefined;
  /** Ends the receiver: waiting calls resolve with nothing. Saves nothing. */
  close(): Promise<void>;
}
