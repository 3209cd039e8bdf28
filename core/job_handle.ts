import type { HeldClaim, JobAbortError } from "./claims.ts";
import type { Context } from "./context.ts";
import type { ClaimRef, JobRow, Landing, RootSession } from "./engine.ts";
import { errorText } from "./error_text.ts";
import type { Job, RetryOptions } from "./job.ts";
import { checkDuration, checkOptions, checkPositiveDuration } from "./options.ts";
import { backoffDelay, decodeBackoff } from "./retry.ts";
import {
  checkSchema,
  decodePayload,
  decodePayloadNow,
  type SchemaOutput,
  type StandardSchema,
} from "./schema.ts";

/**
 * How much earlier than the database we take a lease for ended, in milliseconds: a handler must hear
 * of it before the job can run elsewhere, and timers are late.
 */
function leaseMargin(lease: number): number {
  return Math.min(lease / 20, 250);
}

/** What a retry is asked to do, checked. */
export interface RetryPlan {
  readonly delay: number;
  readonly error: string | undefined;
}

/** A claim held here: the {@linkcode Job} of the caller and what the worker loop needs of it. */
export class JobHandle<T> implements Job<T>, HeldClaim {
  readonly #context: Context;
  readonly #row: JobRow;
  readonly #schema: StandardSchema | undefined;
  #payload: { readonly value: unknown } | undefined;
  #controller: AbortController | undefined;
  #abortReason: JobAbortError | undefined;
  #isWatched = false;
  #leaseEndsAt: number;
  #ending: Promise<boolean> | undefined;

  /** `claimedAt`: the monotonic clock before the claim was sent. */
  constructor(
    context: Context,
    row: JobRow,
    schema: StandardSchema | undefined,
    claimedAt: number,
  ) {
    this.#context = context;
    this.#row = row;
    this.#schema = schema;
    this.#leaseEndsAt = claimedAt + row.visibility - leaseMargin(row.visibility);
  }

  get id(): number {
    return this.#row.id;
  }
  get queue(): string {
    return this.#row.queue;
  }
  get claim(): number {
    return this.#row.claim;
  }
  get worker(): string {
    return this.#row.worker ?? "";
  }
  get attempt(): number {
    return this.#row.attempts;
  }
  get maxAttempts(): number {
    return this.#row.maxAttempts;
  }
  get lastAttempt(): boolean {
    return this.#row.attempts >= this.#row.maxAttempts;
  }
  get priority(): number {
    return this.#row.priority;
  }
  get visibility(): number {
    return this.#row.visibility;
  }
  get runAt(): Date {
    return new Date(this.#row.runAt);
  }
  get createdAt(): Date {
    return new Date(this.#row.createdAt);
  }
  get expiresAt(): Date | undefined {
    return this.#row.expiresAt === undefined ? undefined : new Date(this.#row.expiresAt);
  }
  get lastError(): string | undefined {
    return this.#row.lastError;
  }
  get leaseEndsAt(): number {
    return this.#leaseEndsAt;
  }
  /** The call that finished the job, settled or not; nothing while it is still to be finished. */
  get ending(): Promise<boolean> | undefined {
    return this.#ending;
  }
  /** Whether the claim ended without a call of the holder. */
  get isAborted(): boolean {
    return this.#abortReason !== undefined;
  }
  /** The context of the store it was claimed through. */
  get context(): Context {
    return this.#context;
  }

  get payload(): T {
    this.#payload ??= {
      value: decodePayloadNow(this.#schema, this.#row.payload, this.#operation("read")),
    };
    return this.#payload.value as T;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
      else if (this.watch()) this.#context.claims.check(this);
    }
    return this.#controller.signal;
  }

  /** Decodes the payload through an asynchronous schema too. */
  async load(): Promise<void> {
    this.#payload ??= {
      value: await decodePayload(this.#schema, this.#row.payload, this.#operation("read")),
    };
  }

  /** Has the end of the claim told to this handle; false when it is already, or is finished. */
  watch(): boolean {
    if (this.#isWatched || this.#ending !== undefined) return false;
    this.#isWatched = true;
    this.#context.claims.add(this);
    return true;
  }

  abort(reason: JobAbortError): void {
    this.#abortReason = reason;
    this.#controller?.abort(reason);
  }

  async ack(): Promise<boolean> {
    return await this.#end("ack", "use tx.ackTx", async (session) => {
      const landed = await session.ack(this.queue, [this.ref()]);
      if (landed.length === 0) return false;
      this.reportAck();
      return true;
    });
  }

  async retry(options?: RetryOptions): Promise<boolean> {
    const plan = this.planRetry(options);
    return await this.#end("retry", "use tx.retryTx", async (session) => {
      return this.reportRetry(
        await session.retry(this.queue, this.ref(), plan.delay, plan.error),
        plan,
      );
    });
  }

  async fail(error?: unknown): Promise<boolean> {
    return await this.#end("fail", "use tx.failTx", async (session) => {
      return this.reportLanding(await session.fail(this.queue, this.ref(), errorText(error)));
    });
  }

  async release(): Promise<boolean> {
    return await this.#end("release", "release after it", async (session) => {
      const [landing] = await session.release(this.queue, [this.ref()]);
      return this.reportLanding(landing ?? "lost");
    });
  }

  async heartbeat(extend?: number): Promise<boolean> {
    const operation = this.#operation("extend");
    const lease = extend === undefined
      ? this.visibility
      : checkPositiveDuration(extend, "extend", operation);
    const session = this.#context.writer(operation, "call heartbeat outside it");
    const startedAt = performance.now();
    const landed = await session.heartbeat(this.queue, [{ ...this.ref(), extend: lease }]);
    if (landed.length === 1) this.extended(startedAt, lease);
    else await this.#context.claims.lost(this);
    return landed.length === 1;
  }

  payloadAs<U = T>(): U;
  payloadAs<S extends StandardSchema>(schema: S): SchemaOutput<S>;
  payloadAs(schema?: StandardSchema): unknown {
    const operation = this.#operation("read");
    return decodePayloadNow(checkSchema(schema, operation), this.#row.payload, operation);
  }

  /** What every call of the holder presents. */
  ref(): ClaimRef {
    return { id: this.id, claim: this.claim };
  }

  /** The lease was extended by a call that began at `startedAt`. */
  extended(startedAt: number, lease: number): void {
    this.#leaseEndsAt = Math.max(this.#leaseEndsAt, startedAt + lease - leaseMargin(lease));
  }

  /** Checks retry options and draws the delay from the stamped curve. */
  planRetry(options?: RetryOptions): RetryPlan {
    const operation = this.#operation("retry");
    checkOptions(options, ["delay", "error"], operation);
    return {
      delay: options?.delay === undefined
        ? backoffDelay(decodeBackoff(this.#row.backoff), this.attempt)
        : checkDuration(options.delay, "delay", operation),
      error: errorText(options?.error),
    };
  }

  /** Notes that a call in a transaction finished the job, once that has committed. */
  ended(landed: boolean): void {
    this.#ending = Promise.resolve(landed);
    this.#context.claims.drop(this);
  }

  /** Reports an ack that landed. */
  reportAck(): void {
    const { events } = this.#context;
    if (events.isHeard) events.emit({ type: "acked", queue: this.queue, ids: [this.id] });
  }

  /** Reports how a retry landed; whether it did. */
  reportRetry(landing: Landing, plan: RetryPlan): boolean {
    if (landing === "ready" || landing === "scheduled") {
      this.#context.events.emit({ type: "retried", queue: this.queue, id: this.id, ...plan });
    }
    return this.reportLanding(landing);
  }

  /** Reports a job that died or a claim that was lost; whether the call landed. */
  reportLanding(landing: Landing): boolean {
    if (landing === "dead") {
      this.#context.events.emit({
        type: "dead",
        queue: this.queue,
        id: this.id,
        reason: undefined,
      });
    }
    return landing !== "lost";
  }

  #operation(verb: string): string {
    return `Cannot ${verb} job ${this.id} of queue ${JSON.stringify(this.queue)}`;
  }

  /** Runs a call that finishes the job. After a database error the job is still to be finished. */
  async #end(
    verb: string,
    instead: string,
    call: (session: RootSession) => Promise<boolean>,
  ): Promise<boolean> {
    const session = this.#context.writer(this.#operation(verb), instead);
    const ending = call(session);
    this.#ending = ending;
    this.#context.claims.drop(this);
    try {
      const landed = await ending;
      if (!landed) {
        this.#context.events.emit({ type: "lease-lost", queue: this.queue, id: this.id });
      }
      return landed;
    } catch (error) {
      this.#ending = undefined;
      if (this.#isWatched) this.#context.claims.add(this);
      throw error;
    }
  }
}
