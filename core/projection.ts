import type { Loop } from "./context.ts";
import { ClosedError } from "./errors.ts";
import { ConsumerReceiver } from "./event_receiver.ts";
import { Line } from "./line.ts";
import { checkCount, checkOptions, checkSignal, orDefault } from "./options.ts";
import { outsideScopes, runInScope } from "./scope.ts";
import type { MissedEvents, ProcessOptions, StreamEvent } from "./stream.ts";
import type { EventHandle, StreamHandle } from "./stream_handle.ts";
import { Alarm, Backoffs } from "./timers.ts";
import type { Transaction } from "./transaction.ts";
import type { JoinedTx } from "./tx.ts";
import { checkDrain, DEFAULT_DRAIN, type StopOptions, type WorkerHandle } from "./worker.ts";

type Handler<T> = (event: StreamEvent<T>, tx: JoinedTx) => unknown;

/** Checks the options of `process` and starts the loop. */
export function startProjection<T>(
  stream: StreamHandle<never, T>,
  consumer: string,
  handler: Handler<T>,
  options: ProcessOptions | undefined,
  operation: string,
): WorkerHandle {
  checkOptions(options, ["batch", "signal"], operation);
  const batch = checkCount(orDefault(options?.batch, 1), "batch", 1, operation);
  const signal = options?.signal === undefined
    ? undefined
    : checkSignal({ signal: options.signal }, operation);
  const projection = new Projection(stream, consumer, handler, batch);
  outsideScopes(() => projection.start(signal));
  return projection;
}

/** One `process()` call: a transaction per batch of events, which also moves the offset. */
class Projection<T> implements WorkerHandle, Loop {
  readonly done: Promise<void>;
  readonly #stream: StreamHandle<never, T>;
  readonly #consumer: string;
  readonly #handler: Handler<T>;
  readonly #batch: number;
  readonly #settle: { resolve: () => void; reject: (error: Error) => void };
  /** Waits between attempts; ends with the loop. */
  readonly #line: Line<never> = new Line();
  #receiver: ConsumerReceiver<T> | undefined;
  #tx: Transaction<unknown> | undefined;
  #isStopping = false;
  /** Aborts when the patience of `stop` is over. */
  readonly #patience: AbortController = new AbortController();
  #missed: MissedEvents | undefined;
  /** The source died for good. */
  #death: ClosedError | undefined;

  constructor(
    stream: StreamHandle<never, T>,
    consumer: string,
    handler: Handler<T>,
    batch: number,
  ) {
    this.#stream = stream;
    this.#consumer = consumer;
    this.#handler = handler;
    this.#batch = batch;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.done = promise;
    this.#settle = { resolve, reject };
    // A caller who never looks at `done` must not be ended by it.
    promise.catch(() => {});
  }

  start(signal: AbortSignal | undefined): void {
    this.#stream.context.loops.add(this);
    const stop = () => void this.stop().catch(() => {});
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) stop();
    void this.#run().then(this.#settle.resolve, this.#settle.reject).then(() => {
      signal?.removeEventListener("abort", stop);
      this.#stream.context.loops.delete(this);
    });
  }

  async stop(options?: StopOptions): Promise<void> {
    await this.halt(checkDrain(options, "Cannot stop projection"));
  }

  async halt(patience: number): Promise<void> {
    this.#isStopping = true;
    this.#line.end();
    void this.#receiver?.close();
    const { promise, resolve } = Promise.withResolvers<void>();
    const alarm = new Alarm(() => {
      this.#patience.abort();
      // What the handler has written so far is undone: the event is handled again.
      void this.#tx?.rollback().catch(() => {});
      resolve();
    });
    alarm.set(patience);
    await Promise.race([this.done, promise]).finally(() => alarm.clear());
  }

  drain(): Promise<void> {
    return this.halt(Infinity).catch(() => {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.halt(DEFAULT_DRAIN).catch(() => {});
  }

  async #run(): Promise<void> {
    const { context } = this.#stream;
    const backoff = new Backoffs(100, 10_000);
    while (!this.#isStopping) {
      try {
        if (await this.#step()) backoff.reset();
        else await this.#reopen();
      } catch (error) {
        await this.#reopen();
        if (this.#isStopping || context.isClosed) return;
        if (this.#death !== undefined) throw this.#death;
        context.events.error(error);
        await this.#line.waitFor(backoff.next(), undefined);
      }
    }
    await this.#reopen();
  }

  /** Begins again at the saved offset the next time. */
  async #reopen(): Promise<void> {
    await this.#receiver?.close();
    this.#receiver = undefined;
  }

  /** Waits for events and handles a batch of them; false when another process was faster. */
  async #step(): Promise<boolean> {
    if (this.#receiver === undefined) {
      this.#receiver = new ConsumerReceiver(this.#stream, this.#consumer);
      await this.#arm(this.#receiver);
    }
    const from = this.#receiver.offset();
    const first = await this.#receiver.recv();
    if (first === undefined) {
      // Closed by us, or the source died: then arming again says so.
      return false;
    }
    this.#reportMissed(this.#receiver.missed);
    const events = [first];
    while (events.length < this.#batch) {
      const event = await this.#receiver.tryRecv();
      if (event === undefined) break;
      events.push(event);
    }
    return await this.#handle(events, from);
  }

  async #arm(receiver: ConsumerReceiver<T>): Promise<void> {
    try {
      await receiver.arm();
    } catch (error) {
      if (error instanceof ClosedError) this.#death = error;
      throw error;
    }
  }

  async #handle(events: readonly EventHandle<T>[], from: number): Promise<boolean> {
    const { context, name } = this.#stream;
    for (const event of events) await event.load();
    const { signal } = this.#patience;
    const tx = await context.begin(context, { signal }, this.#stream.operation("process"));
    this.#tx = tx;
    try {
      signal.throwIfAborted();
      await runInScope(context, async () => {
        for (const event of events) await this.#handler(event, tx);
      });
      const offset = events.at(-1)!.offset;
      const isOurs = await tx.saveOffsetTx(name, this.#consumer, offset, {
        from,
        ifLost: "ignore",
      });
      if (isOurs) await tx.commit();
      return isOurs;
    } finally {
      this.#tx = undefined;
      await tx.rollback().catch(() => {});
    }
  }

  /** Reports a gap once, also one that was trimmed while the projection ran. */
  #reportMissed(missed: MissedEvents | undefined): void {
    if (missed === undefined || missed === this.#missed) return;
    this.#missed = missed;
    this.#stream.context.events.emit({
      type: "degraded",
      reason: `events ${missed.from} to ${missed.to} of stream ${
        JSON.stringify(this.#stream.name)
      } were trimmed before consumer ${JSON.stringify(this.#consumer)} had processed them`,
    });
  }
}
