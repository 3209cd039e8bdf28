import type { Context } from "./context.ts";
import type { JoinedSession, Landing } from "./engine.ts";
import { errorText } from "./error_text.ts";
import { ClosedError, DatabaseError } from "./errors.ts";
import type { Job, RetryOptions } from "./job.ts";
import { JobHandle } from "./job_handle.ts";
import { type Lock, LockHandle } from "./lock.ts";
import { checkLabel, describe } from "./names.ts";
import { encodeNotifyPayload } from "./notify.ts";
import { checkChoice, checkOffset, checkOptions, orDefault } from "./options.ts";
import type { Outbox } from "./outbox.ts";
import type { EnqueueOpts, Queue } from "./queue.ts";
import { encodePayload, encodePayloads } from "./schema.ts";
import { jobStamp } from "./stamp.ts";
import type { EventInput, Stream } from "./stream.ts";
import { beyondHead, encodeEvents } from "./stream_handle.ts";
import {
  checkChannel,
  type JobTarget,
  outboxTarget,
  queueTarget,
  streamTarget,
} from "./targets.ts";
import type { JoinedTx, LostOptions, SaveOffsetOptions } from "./tx.ts";
import type { Json } from "./json.ts";

/**
 * The `*Tx` methods, over whatever transaction a session stands for. Used as it is for a transaction
 * the caller will end; {@linkcode Transaction} adds the end.
 */
export class TxOperations<Connection> implements JoinedTx<Connection> {
  readonly context: Context;
  readonly #session: JoinedSession<Connection>;
  #failure: Error | undefined;

  /** Made by the store. */
  constructor(context: Context, session: JoinedSession<Connection>) {
    this.context = context;
    this.#session = session;
  }

  get connection(): Connection {
    this.assertUsable("Cannot use connection");
    return this.#session.connection;
  }

  /** The first failure, after which the transaction cannot be used. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  async enqueueTx(
    queue: string | Queue<never, unknown>,
    opts: EnqueueOpts,
    payload: unknown,
  ): Promise<number> {
    this.assertUsable("Cannot enqueue");
    return await this.#enqueue(queueTarget(this.context, queue, "enqueue to"), opts, payload);
  }

  async enqueueManyTx(
    queue: string | Queue<never, unknown>,
    opts: EnqueueOpts,
    payloads: readonly unknown[],
  ): Promise<number[]> {
    this.assertUsable("Cannot enqueue");
    const { key, stamp, schema, operation } = queueTarget(this.context, queue, "enqueue to");
    const options = jobStamp(stamp, opts, operation);
    const encoded = encodePayloads(schema, payloads, operation);
    if (payloads.length === 0) return [];
    return await this.#runWith(
      encoded,
      operation,
      (session, texts) => session.enqueue(key, options, texts),
    );
  }

  async outboxEnqueueTx(
    outbox: string | Outbox<never, unknown>,
    opts: EnqueueOpts,
    payload: unknown,
  ): Promise<number> {
    this.assertUsable("Cannot enqueue");
    return await this.#enqueue(outboxTarget(this.context, outbox, "enqueue to"), opts, payload);
  }

  async publishTx(stream: string | Stream<never, unknown>, payload: unknown): Promise<number> {
    return await this.#publish(stream, undefined, payload);
  }

  async publishWithKeyTx(
    stream: string | Stream<never, unknown>,
    key: string,
    payload: unknown,
  ): Promise<number> {
    this.assertUsable("Cannot publish");
    return await this.#publish(stream, checkLabel("key", key, "Cannot publish"), payload);
  }

  async publishManyTx(
    stream: string | Stream<never, unknown>,
    events: readonly EventInput<unknown>[],
  ): Promise<number[]> {
    this.assertUsable("Cannot publish");
    const { name, schema, operation } = streamTarget(this.context, stream, "publish to");
    const encoded = encodeEvents(schema, events, operation);
    if (events.length === 0) return [];
    return await this.#runWith(
      encoded,
      operation,
      (session, batch) => session.publish(name, batch),
    );
  }

  async notifyTx(channel: string, payload?: Json): Promise<void> {
    const operation = "Cannot notify";
    this.assertUsable(operation);
    checkChannel(channel, operation);
    const text = encodeNotifyPayload(this.context, payload, operation);
    await this.#run(operation, (session) => session.notify(channel, text));
  }

  async saveOffsetTx(
    stream: string | Stream<never, unknown>,
    consumer: string,
    offset: number,
    options?: SaveOffsetOptions,
  ): Promise<boolean> {
    this.assertUsable("Cannot save offset");
    const { name, operation } = streamTarget(this.context, stream, "save an offset of");
    checkLabel("consumer", consumer, operation);
    checkOffset(offset, "offset", operation);
    checkOptions(options, ["from", "ifLost"], operation);
    checkLost(options, operation);
    const from = options?.from === undefined
      ? undefined
      : checkOffset(options.from, "from", operation);
    const save = async () => {
      const saving = await this.#run(
        operation,
        (session) => session.saveOffset(name, consumer, offset, from),
      );
      if (saving === "beyond") throw beyondHead(operation, offset);
      if (saving === "advanced") return true;
      if (from === undefined) return false;
      return await this.lost(
        `${operation}: the saved offset of consumer ${JSON.stringify(consumer)} is not ${from}`,
        undefined,
        options,
      );
    };
    return await (from === undefined ? save() : this.guard(save));
  }

  async ackTx(job: Job<unknown>, options?: LostOptions): Promise<boolean> {
    return await this.#finish(job, "ack", options, ["ifLost"], async (handle, session) => {
      const landed = await session.ack(handle.queue, [handle.ref()]);
      return landed.length === 1 ? () => handle.reportAck() : undefined;
    });
  }

  async retryTx(job: Job<unknown>, options?: RetryOptions & LostOptions): Promise<boolean> {
    return await this.#finish(
      job,
      "retry",
      options,
      ["ifLost", "delay", "error"],
      async (handle, session) => {
        const { ifLost: _, ...retry } = options ?? {};
        const plan = handle.planRetry(retry);
        const landing = await session.retry(handle.queue, handle.ref(), plan.delay, plan.error);
        return landing === "lost" ? undefined : () => void handle.reportRetry(landing, plan);
      },
    );
  }

  async failTx(job: Job<unknown>, error?: unknown, options?: LostOptions): Promise<boolean> {
    return await this.#finish(job, "fail", options, ["ifLost"], async (handle, session) => {
      const landing: Landing = await session.fail(handle.queue, handle.ref(), errorText(error));
      return landing === "lost" ? undefined : () => void handle.reportLanding(landing);
    });
  }

  async cancelTx(queue: string | Queue<never, unknown>, id: number): Promise<boolean> {
    this.assertUsable("Cannot cancel");
    const { key, operation } = queueTarget(this.context, queue, "cancel a job of");
    checkOffset(id, "id", operation);
    return await this.#run(operation, (session) => session.cancel(key, id));
  }

  async assertLockTx(lock: Lock, options?: LostOptions): Promise<boolean> {
    const operation = "Cannot assert lock";
    this.assertUsable(operation);
    checkOptions(options, ["ifLost"], operation);
    checkLost(options, operation);
    if (!(lock instanceof LockHandle)) {
      throw new TypeError(`${operation}: a lock of this store is needed, got ${describe(lock)}`);
    }
    if (lock.context !== this.context) {
      throw new TypeError(`${operation}: lock "${lock.name}" was taken through another store`);
    }
    return await this.guard(async () => {
      const isHeld = await this.#run(
        operation,
        (session) => session.assertLock(lock.name, lock.token),
      );
      if (isHeld) return true;
      const message = `${operation}: lock ${JSON.stringify(lock.name)} has lapsed`;
      await this.lost(message, undefined, options);
      if (options?.ifLost === "ignore") return false;
      throw new ClosedError(message);
    });
  }

  /** Refuses calls on a transaction that has failed, and on a closed store. */
  assertUsable(operation: string): void {
    this.context.assertOpen(operation);
    if (this.#failure !== undefined) throw this.failureError(operation);
  }

  /** The error of a call after the first failure. */
  protected failureError(operation: string): Error {
    const cause = this.#failure;
    const message = `${operation}: the transaction failed before and was rolled back`;
    if (!(cause instanceof DatabaseError)) return new ClosedError(message, { cause });
    return new DatabaseError(message, {
      cause,
      retryable: cause.retryable,
      outcome: cause.outcome,
    });
  }

  /** Ends the transaction after its first failure. The caller ends a joined one. */
  protected fail(error: Error): Promise<void> {
    this.#failure ??= error;
    return Promise.resolve();
  }

  /**
   * What a call relies on was lost: the writes of a stale holder must not commit. The caller of a
   * joined transaction is the one who must not, so it hears of it by an error.
   */
  protected async lost(
    message: string,
    _job: JobHandle<unknown> | undefined,
    options: LostOptions | undefined,
  ): Promise<false> {
    if (options?.ifLost === "ignore") return false;
    const error = new ClosedError(message);
    await this.fail(error);
    throw error;
  }

  /** A call that may lose the transaction: a commit waits for it. */
  protected guard<T>(call: () => Promise<T>): Promise<T> {
    return call();
  }

  /** A job was finished; `report` is to be called when that has committed. */
  protected settled(job: JobHandle<unknown>, report: () => void): void {
    // When the caller rolls back, the lease lapses and the job runs again.
    job.ended(true);
    report();
  }

  async #enqueue(target: JobTarget, opts: EnqueueOpts, payload: unknown): Promise<number> {
    const { key, stamp, schema, operation } = target;
    const options = jobStamp(stamp, opts, operation);
    const [id] = await this.#runWith(
      encodePayload(schema, payload, operation),
      operation,
      (session, text) => session.enqueue(key, options, [text]),
    );
    return id!;
  }

  async #publish(
    stream: string | Stream<never, unknown>,
    key: string | undefined,
    payload: unknown,
  ): Promise<number> {
    this.assertUsable("Cannot publish");
    const { name, schema, operation } = streamTarget(this.context, stream, "publish to");
    const encoded = encodePayload(schema, payload, operation);
    const offsets = await this.#runWith(
      encoded,
      operation,
      (session, text) => session.publish(name, [{ key, payload: text }]),
    );
    return offsets[0]!;
  }

  async #finish(
    job: Job<unknown>,
    verb: string,
    options: LostOptions | undefined,
    known: readonly string[],
    call: (
      handle: JobHandle<unknown>,
      session: JoinedSession<Connection>,
    ) => Promise<(() => void) | undefined>,
  ): Promise<boolean> {
    const operation = `Cannot ${verb} job`;
    this.assertUsable(operation);
    checkOptions(options, known, operation);
    checkLost(options, operation);
    if (!(job instanceof JobHandle)) {
      throw new TypeError(`${operation}: a claimed job is needed, got ${describe(job)}`);
    }
    if (job.context !== this.context) {
      throw new TypeError(`${operation}: job ${job.id} was claimed through another store`);
    }
    return await this.guard(async () => {
      const report = await this.#run(operation, (session) => call(job, session));
      if (report === undefined) {
        return await this.lost(`${operation}: the claim of job ${job.id} was lost`, job, options);
      }
      this.settled(job, report);
      return true;
    });
  }

  /** Runs a call at once; where a schema is asynchronous, when it has answered: a commit waits. */
  #runWith<Encoded, T>(
    encoded: Encoded | Promise<Encoded>,
    operation: string,
    call: (session: JoinedSession<Connection>, value: Encoded) => Promise<T>,
  ): Promise<T> {
    if (!(encoded instanceof Promise)) {
      return this.#run(operation, (session) => call(session, encoded));
    }
    return this.guard(async () => {
      const value = await encoded;
      return await this.#run(operation, (session) => call(session, value));
    });
  }

  async #run<T>(
    operation: string,
    call: (session: JoinedSession<Connection>) => Promise<T>,
  ): Promise<T> {
    // Encoding may have waited for a schema.
    this.assertUsable(operation);
    try {
      return await call(this.#session);
    } catch (error) {
      if (error instanceof DatabaseError) await this.fail(error);
      throw error;
    }
  }
}

function checkLost(options: LostOptions | undefined, operation: string): void {
  checkChoice(orDefault(options?.ifLost, "rollback"), ["rollback", "ignore"], "ifLost", operation);
}
