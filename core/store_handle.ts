import { Claims } from "./claims.ts";
import { Context } from "./context.ts";
import type { Engine } from "./engine.ts";
import { DatabaseError } from "./errors.ts";
import { EventHub, type StoreEvent } from "./events.ts";
import type { Json } from "./json.ts";
import { type Lock, tryLock } from "./lock.ts";
import { checkName, describe } from "./names.ts";
import { encodeNotifyPayload } from "./notify.ts";
import { checkCount, checkFunction, checkOptions, checkPatience, orDefault } from "./options.ts";
import type { Outbox, OutboxOpts } from "./outbox.ts";
import { OutboxHandle } from "./outbox_handle.ts";
import { Poller } from "./poller.ts";
import type { Queue, QueueOpts } from "./queue.ts";
import { QueueHandle } from "./queue_handle.ts";
import { checkSchema } from "./schema.ts";
import { runInScope } from "./scope.ts";
import { queueStamp } from "./stamp.ts";
import type { CloseOptions, Store, StoreStatus } from "./store.ts";
import type { Stream, StreamOpts } from "./stream.ts";
import { StreamHandle } from "./stream_handle.ts";
import { Sweeper } from "./sweeper.ts";
import { Alarm, Backoffs, sleep } from "./timers.ts";
import { beginTransaction, type Transaction } from "./transaction.ts";
import type { JoinedTx, TransactionOptions, TxHandle, TxOptions } from "./tx.ts";
import { TxOperations } from "./tx_operations.ts";
import { openWakeReceiver, type WakeReceiver } from "./wake.ts";

/** What the engines' options have in common, checked. */
export interface StoreSettings {
  /** Milliseconds a transaction may be open. */
  readonly txTimeout: number;
  /** Milliseconds between two background sweeps. */
  readonly sweepInterval: number;
}

/** How long `close()` waits for handlers by default, in milliseconds. */
const DEFAULT_CLOSE_DRAIN = 1_000;

/** How much longer `close()` waits for claims to be given back before it closes over them. */
const GRACE = 500;

/** Makes the store over an engine; the engine is the store's from then on. */
export function createStore<Connection>(
  engine: Engine<Connection>,
  settings: StoreSettings,
): Store<Connection> {
  return new StoreHandle(engine, settings);
}

class StoreHandle<Connection> implements Store<Connection> {
  readonly #engine: Engine<Connection>;
  readonly #context: Context;
  readonly #sweeper: Sweeper;
  #closing: Promise<void> | undefined;

  constructor(engine: Engine<Connection>, settings: StoreSettings) {
    this.#engine = engine;
    const events = new EventHub();
    engine.onEvent = (event) => events.emit(event);
    this.#context = new Context(
      engine,
      events,
      new Poller(engine.session, engine.wakes, events),
      new Claims(engine.session, engine.wakes, events),
      beginTransaction,
      settings.txTimeout,
    );
    this.#sweeper = new Sweeper(engine.session, events, settings.sweepInterval);
  }

  async notify(channel: string, payload?: Json): Promise<void> {
    const operation = "Cannot notify";
    checkName("channel", channel, operation);
    const session = this.#context.writer(operation, "use tx.notifyTx");
    await session.notify(channel, encodeNotifyPayload(this.#context, payload, operation));
  }

  listen(channel: string): Promise<WakeReceiver> {
    return openWakeReceiver(this.#context, channel);
  }

  stream(name: string, opts?: StreamOpts): Stream<never, never, Connection> {
    const operation = "Cannot open stream";
    this.#context.assertOpen(operation);
    checkName("stream", name, operation);
    checkOptions(opts, ["schema"], operation);
    return new StreamHandle(this.#context, name, checkSchema(opts?.schema, operation));
  }

  queue(name: string, opts?: QueueOpts): Queue<never, never, Connection> {
    const operation = "Cannot open queue";
    this.#context.assertOpen(operation);
    checkName("queue", name, operation);
    const stamp = queueStamp(opts, operation);
    const schema = checkSchema(opts?.schema, operation);
    const identity = {
      kind: "queue",
      name,
      key: name,
      enqueueInstead: "use tx.enqueueTx",
      cancelInstead: "use tx.cancelTx",
    };
    return new QueueHandle<never, never, Connection>(this.#context, identity, stamp, schema);
  }

  outbox(name: string, opts?: OutboxOpts): Outbox<never, never> {
    const operation = "Cannot open outbox";
    this.#context.assertOpen(operation);
    checkName("outbox", name, operation);
    checkOptions(opts, ["schema"], operation);
    return new OutboxHandle(this.#context, name, checkSchema(opts?.schema, operation));
  }

  async tryLock(name: string, owner: string, ttl: number): Promise<Lock | undefined> {
    return await tryLock(this.#context, name, owner, ttl);
  }

  beginTx(options?: TxOptions): Promise<TxHandle<Connection>> {
    return this.#begin(options, "Cannot begin a transaction");
  }

  async transaction<T>(
    work: (tx: JoinedTx<Connection>) => Promise<T> | T,
    options?: TransactionOptions,
  ): Promise<T> {
    const operation = "Cannot run a transaction";
    checkFunction(work, "work", operation);
    const { retries = 0, ...txOptions } = options ?? {};
    checkOptions(options, ["retries", "timeout", "signal"], operation);
    let left = checkCount(retries, "retries", 0, operation);
    const backoff = new Backoffs(5, 500);
    while (true) {
      try {
        return await this.#attempt(work, txOptions, operation);
      } catch (error) {
        if (left-- <= 0 || !(error instanceof DatabaseError && error.retryable)) throw error;
        await sleep(backoff.next(), txOptions.signal);
      }
    }
  }

  async joinTx(connection: Connection): Promise<JoinedTx<Connection>> {
    const operation = "Cannot join a transaction";
    this.#context.assertOpen(operation);
    if ((typeof connection !== "object" && typeof connection !== "function") || !connection) {
      throw new TypeError(`${operation}: a connection is needed, got ${describe(connection)}`);
    }
    return new TxOperations(this.#context, await this.#engine.join(connection));
  }

  async status(): Promise<StoreStatus> {
    const { isClosed, isDraining, loops, transactions } = this.#context;
    return {
      ...await this.#engine.status(),
      state: isClosed ? "closed" : isDraining ? "draining" : "open",
      workers: loops.size,
      transactions: transactions.list().map((tx) => ({
        openedAt: new Date(Math.ceil(Date.now() - tx.age)),
        origin: tx.origin,
      })),
    };
  }

  async drain(): Promise<void> {
    this.#context.assertOpen("Cannot drain");
    this.#context.isDraining = true;
    await Promise.all([...this.#context.loops].map((loop) => loop.drain()));
  }

  async close(options?: CloseOptions): Promise<void> {
    checkOptions(options, ["drain"], "Cannot close");
    const patience = checkPatience(
      orDefault(options?.drain, DEFAULT_CLOSE_DRAIN),
      "drain",
      "Cannot close",
    );
    await (this.#closing ??= this.#close(patience));
  }

  onEvent(listener: (event: StoreEvent) => void): () => void {
    checkFunction(listener, "listener", "Cannot listen to events");
    return this.#context.events.on(listener);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close().catch((error) => this.#context.events.error(error));
  }

  /** Typed as the engine's: the core never looks at a connection. */
  #begin(options: TxOptions | undefined, operation: string): Promise<Transaction<Connection>> {
    return this.#context.begin(this.#context, options, operation) as Promise<
      Transaction<Connection>
    >;
  }

  async #attempt<T>(
    work: (tx: JoinedTx<Connection>) => Promise<T> | T,
    options: TxOptions,
    operation: string,
  ): Promise<T> {
    const tx = await this.#begin(options, operation);
    try {
      const value = await runInScope(this.#context, async () => await work(tx));
      await tx.commit();
      return value;
    } catch (error) {
      await tx.abandon("its work failed").catch((failure) => this.#context.events.error(failure));
      throw error;
    }
  }

  async #close(patience: number): Promise<void> {
    const { loops, receivers, transactions, poller, claims, events } = this.#context;
    // Handlers that still run may enqueue and publish until they have ended.
    this.#context.isDraining = true;
    this.#sweeper.close();
    await withinTime(
      patience + GRACE,
      [...loops].map((loop) => loop.halt(patience).catch((error) => events.error(error))),
    );
    this.#context.isClosed = true;
    poller.close();
    claims.close();
    for (const receiver of [...receivers]) await receiver.close();
    const open = transactions.list().map((tx) => tx.abandon("the store was closed"));
    transactions.close();
    await withinTime(GRACE, open.map((end) => end.catch((error) => events.error(error))));
    await this.#engine.close();
  }
}

/** Waits for all of `promises`, which do not reject, but not longer than `patience` milliseconds. */
async function withinTime(patience: number, promises: readonly Promise<void>[]): Promise<void> {
  if (promises.length === 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const alarm = new Alarm(resolve);
  alarm.set(patience);
  await Promise.race([Promise.all(promises), promise]);
  alarm.clear();
}
