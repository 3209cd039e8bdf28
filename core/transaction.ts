import type { Context } from "./context.ts";
import type { TxSession } from "./engine.ts";
import { ClosedError } from "./errors.ts";
import type { JobHandle } from "./job_handle.ts";
import { checkOptions, checkPatience, checkSignal } from "./options.ts";
import { refuseInScope } from "./scope.ts";
import type { LostOptions, TxHandle, TxOptions } from "./tx.ts";
import { TxOperations } from "./tx_operations.ts";

/** Checks the options, waits for a turn and begins. */
export async function beginTransaction(
  context: Context,
  options: TxOptions | undefined,
  operation: string,
): Promise<Transaction<unknown>> {
  const origin = context.transactions.trace();
  context.assertOpen(operation);
  refuseInScope(context, operation, "use its tx");
  const { timeout = context.txTimeout, signal } = checkTxOptions(options, operation);
  const session = await context.engine.begin({ label: origin, signal });
  const tx = new Transaction(context, session, origin, timeout);
  if (context.isClosed) {
    await tx.abandon("the store is closed");
    context.assertOpen(operation);
  }
  return tx;
}

function checkTxOptions(options: TxOptions | undefined, operation: string): TxOptions {
  if (options === undefined) return {};
  checkOptions(options, ["timeout", "signal"], operation);
  const { timeout, signal } = options;
  if (timeout !== undefined) checkPatience(timeout, "timeout", operation);
  if (signal !== undefined) checkSignal({ signal }, operation)?.throwIfAborted();
  return options;
}

/** The {@linkcode TxHandle} of the caller. */
export class Transaction<Connection> extends TxOperations<Connection>
  implements TxHandle<Connection> {
  readonly #session: TxSession<Connection>;
  readonly #origin: () => string;
  /** How long it may be open, in milliseconds. */
  readonly timeout: number;
  /** By the monotonic clock. */
  readonly #openedAt: number = performance.now();
  /** Jobs finished in it, and how to report them once it has committed. */
  #settled: Map<JobHandle<unknown>, () => void> | undefined;
  #lostJob: JobHandle<unknown> | undefined;
  /** Calls under way that may lose the transaction. */
  #guards: Set<Promise<unknown>> | undefined;
  /** Why every call is refused. */
  #end: string | undefined;

  /** Made by `beginTransaction`. */
  constructor(
    context: Context,
    session: TxSession<Connection>,
    origin: () => string,
    timeout: number,
  ) {
    super(context, session);
    this.#session = session;
    this.#origin = origin;
    this.timeout = timeout;
    context.transactions.add(this);
  }

  /** How long it has been open, in milliseconds. */
  get age(): number {
    return performance.now() - this.#openedAt;
  }

  /** Where it was opened, for people. */
  get origin(): string {
    return this.#origin();
  }

  /** The job whose claim was lost, if that is what lost the transaction. */
  get lostJob(): JobHandle<unknown> | undefined {
    return this.#lostJob;
  }

  /** Whether a call in it has finished the job. */
  hasSettled(job: JobHandle<unknown>): boolean {
    return this.#settled?.has(job) === true;
  }

  /** Its time is up: rolls back what nobody ended. */
  async expire(): Promise<void> {
    await this.abandon(
      `it was rolled back after ${this.timeout} ms, it had been opened at ${this.#origin()}`,
    );
  }

  async commit(): Promise<void> {
    const operation = "Cannot commit";
    if (this.#guards !== undefined) await Promise.allSettled(this.#guards);
    this.#assertOpen(operation);
    this.#close("it was committed before");
    if (this.failure !== undefined) throw this.failureError(operation);
    await this.#session.commit();
    this.#settled?.forEach((report, job) => {
      job.ended(true);
      report();
    });
  }

  async rollback(): Promise<void> {
    this.#assertOpen("Cannot roll back");
    await this.abandon("it was rolled back before");
  }

  /** Rolls back if it is still open; later calls are refused with `reason`. */
  async abandon(reason: string): Promise<void> {
    if (this.#end !== undefined) return;
    this.#close(reason);
    if (this.failure === undefined) await this.#session.rollback();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.abandon("it was rolled back when its block was left");
    } catch (error) {
      // Disposing never throws; the database rolls back what nobody commits.
      this.context.events.error(error);
    }
  }

  override assertUsable(operation: string): void {
    this.#assertOpen(operation);
    super.assertUsable(operation);
  }

  protected override async fail(error: Error): Promise<void> {
    if (this.failure !== undefined) return;
    void super.fail(error);
    await this.#session.rollback();
  }

  protected override async lost(
    message: string,
    job: JobHandle<unknown> | undefined,
    options: LostOptions | undefined,
  ): Promise<false> {
    if (options?.ifLost === "ignore") return false;
    if (this.failure === undefined) this.#lostJob = job;
    await this.fail(new ClosedError(message));
    return false;
  }

  protected override guard<T>(call: () => Promise<T>): Promise<T> {
    const guarded = call();
    const guards = this.#guards ??= new Set();
    guards.add(guarded);
    const leave = () => void guards.delete(guarded);
    guarded.then(leave, leave);
    return guarded;
  }

  protected override settled(job: JobHandle<unknown>, report: () => void): void {
    (this.#settled ??= new Map()).set(job, report);
  }

  #assertOpen(operation: string): void {
    if (this.#end === undefined) return;
    throw new ClosedError(`${operation}: the transaction is over, ${this.#end}`, {
      ...(this.failure && { cause: this.failure }),
    });
  }

  #close(reason: string): void {
    this.#end = reason;
    this.context.transactions.delete(this);
  }
}
