import type { EventRow } from "./engine.ts";
import { DatabaseError } from "./errors.ts";
import { Line } from "./line.ts";
import { checkSignal, type WaitOptions } from "./options.ts";
import { outsideScopes } from "./scope.ts";
import type { EventReceiver, MissedEvents, StreamEvent } from "./stream.ts";
import type { EventHandle, StreamHandle } from "./stream_handle.ts";
import { Backoffs } from "./timers.ts";

/** How many events are read ahead. */
const PAGE = 100;

/** Opens a receiver; it is armed when the promise resolves. */
export async function openEventReceiver<T>(
  stream: StreamHandle<never, T>,
  consumer: string,
): Promise<EventReceiver<T>> {
  const receiver = new ConsumerReceiver<T>(stream, consumer);
  await receiver.arm();
  return receiver;
}

/** The {@linkcode EventReceiver} of the caller. */
export class ConsumerReceiver<T> implements EventReceiver<T> {
  readonly #stream: StreamHandle<never, T>;
  readonly #consumer: string;
  readonly #line: Line<true> = new Line();
  /** Rows read ahead: they count as handed out only when they are. */
  readonly #ahead: EventRow[] = [];
  /** The offset of the last event handed out. */
  #offset = 0;
  #missed: MissedEvents | undefined;
  /** Something was published since the last read that came back short. */
  #mayHaveMore = true;
  /** The call before this one: calls are served in order. */
  #previous: Promise<unknown> = Promise.resolve();
  #unwatch: () => void = () => {};

  /** Made by `openEventReceiver`. */
  constructor(stream: StreamHandle<never, T>, consumer: string) {
    this.#stream = stream;
    this.#consumer = consumer;
  }

  get missed(): MissedEvents | undefined {
    return this.#missed;
  }

  /** Watches the stream, then reads the saved offset. */
  async arm(): Promise<void> {
    const { context, name } = this.#stream;
    context.receivers.add(this);
    try {
      const unwatch = await outsideScopes(() =>
        context.engine.wakes.watch(`stream:${name}`, {
          wake: () => {
            this.#mayHaveMore = true;
            this.#line.serve(true);
          },
          end: (cause) => this.#end(cause),
        })
      );
      if (this.#line.isClosed) unwatch();
      else this.#unwatch = unwatch;
      this.#offset = await this.#stream.getOffset(this.#consumer);
      // Whoever asks for `missed` before the first event is to be told.
      await this.#readAhead();
    } catch (error) {
      this.#end(undefined);
      throw error;
    }
  }

  offset(): number {
    return this.#offset;
  }

  async recv(options?: WaitOptions): Promise<EventHandle<T> | undefined> {
    const signal = checkSignal(options, this.#stream.operation("receive from"));
    signal?.throwIfAborted();
    return await this.#inTurn(signal, () => this.#next(signal));
  }

  async tryRecv(): Promise<EventHandle<T> | undefined> {
    const operation = this.#stream.operation("receive from");
    return await this.#inTurn(undefined, async () => {
      if (this.#line.isClosed) throw this.#line.closedError(operation, "event receiver");
      if (this.#ahead.length === 0) await this.#readAhead();
      if (this.#line.isClosed) throw this.#line.closedError(operation, "event receiver");
      return this.#take();
    });
  }

  async readSince(offset: number, limit: number): Promise<StreamEvent<T>[]> {
    return await this.#stream.readSince(offset, limit);
  }

  async saveOffset(): Promise<boolean> {
    return await this.#stream.saveOffset(this.#consumer, this.#offset);
  }

  close(): Promise<void> {
    this.#end(undefined);
    return Promise.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<StreamEvent<T>> {
    while (true) {
      const event = await this.recv();
      if (event !== undefined) yield event;
      else if (this.#line.death === undefined) return;
      else throw this.#line.closedError(this.#stream.operation("receive from"), "event receiver");
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Runs `call` after the calls before it. A call whose signal aborts leaves the line at once. */
  async #inTurn<R>(signal: AbortSignal | undefined, call: () => Promise<R>): Promise<R> {
    const previous = this.#previous;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#previous = promise;
    try {
      await untilAborted(previous, signal);
      return await call();
    } finally {
      // The calls behind an aborted one still wait for those before it.
      void previous.then(() => resolve());
    }
  }

  async #next(signal: AbortSignal | undefined): Promise<EventHandle<T> | undefined> {
    const backoff = new Backoffs(50, 5_000);
    while (!this.#line.isClosed) {
      const event = this.#take();
      if (event !== undefined) return event;
      if (!this.#mayHaveMore) {
        await this.#line.wait(signal);
        continue;
      }
      try {
        await this.#readAhead();
        signal?.throwIfAborted();
      } catch (error) {
        if (!(error instanceof DatabaseError) || !error.retryable) throw error;
        this.#stream.context.events.error(error);
        await this.#line.waitFor(backoff.next(), signal);
      }
    }
    return undefined;
  }

  #take(): EventHandle<T> | undefined {
    const row = this.#ahead.shift();
    if (row === undefined) return undefined;
    this.#offset = row.offset;
    return this.#stream.eventOf(row);
  }

  /** Reads the page after the last event handed out; nothing is ahead when this is called. */
  async #readAhead(): Promise<void> {
    // Before the read: what is published during it is seen, or wakes us again.
    this.#mayHaveMore = false;
    try {
      const { context, name } = this.#stream;
      const session = context.reader(this.#stream.operation("receive from"));
      const { events, floor } = await session.readEvents(name, this.#offset, PAGE);
      if (this.#offset > 0 && floor > this.#offset) {
        this.#missed = { from: this.#offset + 1, to: floor };
      }
      this.#ahead.push(...events);
      if (events.length === PAGE) this.#mayHaveMore = true;
    } catch (error) {
      this.#mayHaveMore = true;
      throw error;
    }
  }

  #end(cause: Error | undefined): void {
    this.#unwatch();
    this.#stream.context.receivers.delete(this);
    this.#line.end(cause);
  }
}

/** Waits for `promise`, or rejects with the signal's reason, leaving nothing behind. */
async function untilAborted(
  promise: Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (signal === undefined) return void await promise;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
