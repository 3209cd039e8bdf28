import type { Context } from "./context.ts";
import { Line } from "./line.ts";
import { checkName, Reserved } from "./names.ts";
import { checkPatience, checkSignal, type WaitOptions } from "./options.ts";
import { outsideScopes } from "./scope.ts";

/**
 * Something happened on a channel. A wake carries nothing else: use a stream or an outbox for content
 * (ADR-008 §3).
 *
 * @example
 * ```ts
 * import type { Wake } from "@alkstore/alkstore";
 *
 * const wake: Wake = { channel: "orders" };
 * console.log(wake.channel);
 * ```
 */
export interface Wake {
  /**
   * The channel; `Reserved.LISTENER_RECONNECTED` when wakes may have been lost before this one.
   */
  readonly channel: string;
}

/**
 * Receives the wakes of one channel.
 *
 * A wake is a hint: several notifies may become one wake, and a wake may come without a notify. After
 * the last notify at least one wake follows while the receiver is open.
 *
 * Iterating it ends quietly after `close()` and throws `ClosedError` when the source died by itself.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * await using receiver = await store.listen("orders");
 * await store.notify("orders");
 * console.log(await receiver.recv()); // { channel: "orders" }
 * ```
 */
export interface WakeReceiver extends AsyncIterable<Wake>, AsyncDisposable {
  /**
   * Waits for the next wake; nothing once the receiver is closed. Concurrent calls are served in
   * order. Rejects with the reason of an aborted `signal`.
   */
  recv(options?: WaitOptions): Promise<Wake | undefined>;
  /** The wake that is pending, or nothing. Throws `ClosedError` when closed. */
  tryRecv(): Wake | undefined;
  /**
   * Like `recv`, but gives up after `timeout` milliseconds with nothing. Rejects with `ClosedError`
   * when closed, and with the reason of an aborted `signal`.
   */
  recvTimeout(timeout: number, options?: WaitOptions): Promise<Wake | undefined>;
  /** Ends the receiver: waiting calls resolve with nothing. Does nothing the second time. */
  close(): Promise<void>;
}

/** Opens a receiver; it is armed when the promise resolves. */
export async function openWakeReceiver(context: Context, channel: string): Promise<WakeReceiver> {
  const operation = "Cannot listen";
  checkName("channel", channel, operation);
  context.assertOpen(operation);
  const receiver = new ChannelReceiver(context, channel);
  await receiver.arm();
  return receiver;
}

class ChannelReceiver implements WakeReceiver {
  readonly #context: Context;
  readonly #channel: string;
  readonly #line: Line<Wake> = new Line();
  /** Wakes not yet handed out: at most one of each channel, in the order they came. */
  readonly #pending: Set<string> = new Set();
  #unwatch: () => void = () => {};

  constructor(context: Context, channel: string) {
    this.#context = context;
    this.#channel = channel;
  }

  async arm(): Promise<void> {
    this.#context.receivers.add(this);
    try {
      const unwatch = await outsideScopes(() =>
        this.#context.engine.wakes.watch(`channel:${this.#channel}`, {
          wake: (reconnected) => this.#wake(reconnected),
          end: (cause) => this.#end(cause),
        })
      );
      if (this.#line.isClosed) unwatch();
      else this.#unwatch = unwatch;
    } catch (error) {
      this.#context.receivers.delete(this);
      throw error;
    }
  }

  async recv(options?: WaitOptions): Promise<Wake | undefined> {
    const signal = checkSignal(options, "Cannot receive");
    signal?.throwIfAborted();
    if (this.#line.isClosed) return undefined;
    return this.#take() ?? await this.#line.wait(signal);
  }

  tryRecv(): Wake | undefined {
    if (this.#line.isClosed) throw this.#line.closedError("Cannot receive", "wake receiver");
    return this.#take();
  }

  async recvTimeout(timeout: number, options?: WaitOptions): Promise<Wake | undefined> {
    const operation = "Cannot receive";
    const patience = checkPatience(timeout, "timeout", operation);
    const signal = checkSignal(options, operation);
    signal?.throwIfAborted();
    const pending = this.tryRecv();
    if (pending !== undefined || patience === 0) return pending;
    // Nothing came, or the receiver was closed meanwhile and says so.
    return await this.#line.waitFor(patience, signal) ?? this.tryRecv();
  }

  close(): Promise<void> {
    this.#end(undefined);
    return Promise.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Wake> {
    while (true) {
      const wake = await this.recv();
      if (wake !== undefined) yield wake;
      else if (this.#line.death === undefined) return;
      else throw this.#line.closedError("Cannot receive", "wake receiver");
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #wake(reconnected: boolean): void {
    const channel = reconnected ? Reserved.LISTENER_RECONNECTED : this.#channel;
    // Straight to the call that waits longest, so that a later call cannot overtake it.
    if (!this.#line.serve({ channel })) this.#pending.add(channel);
  }

  #take(): Wake | undefined {
    for (const channel of this.#pending) {
      this.#pending.delete(channel);
      return { channel };
    }
    return undefined;
  }

  #end(cause: Error | undefined): void {
    this.#unwatch();
    this.#context.receivers.delete(this);
    this.#line.end(cause);
  }
}
