import { giveUp, runAttempt, runTxAttempt } from "./attempt.ts";
import { JobAbortError } from "./claims.ts";
import type { Context, Loop } from "./context.ts";
import { ClosedError } from "./errors.ts";
import { Heartbeats } from "./heartbeats.ts";
import type { Job } from "./job.ts";
import type { JobHandle } from "./job_handle.ts";
import type { Waiter } from "./poller.ts";
import type { QueueHandle } from "./queue_handle.ts";
import { Alarm, Backoffs } from "./timers.ts";
import type { JoinedTx } from "./tx.ts";
import { checkDrain, DEFAULT_DRAIN, type StopOptions, type WorkerHandle } from "./worker.ts";

/** What runs for each job: with its transaction, or without one. */
export type Handler<T> =
  | { readonly isTransactional: false; readonly run: (job: Job<T>) => unknown }
  | { readonly isTransactional: true; readonly run: (job: Job<T>, tx: JoinedTx) => unknown };

/** Checked settings of a loop. */
export interface LoopSettings {
  readonly concurrency: number;
  readonly worker: string;
}

/**
 * One `work()` call: claims as many jobs as handlers are free, runs them, and acks what finished.
 *
 * A turn sends the acks of all jobs that finished since the last one together with the next claim, so
 * that the engine can commit them as one; nothing counts as finished before that commit.
 */
export class WorkerLoop<T> implements WorkerHandle, Waiter, Loop {
  readonly done: Promise<void>;
  readonly #queue: QueueHandle<never, T>;
  readonly #context: Context;
  readonly #handler: Handler<T>;
  readonly #settings: LoopSettings;
  /** Claims not finished yet: a slot is free when its handler has ended, a claim when it is acked. */
  readonly #held: Heartbeats<T>;
  readonly #finished: JobHandle<T>[] = [];
  readonly #acking: Set<JobHandle<T>> = new Set();
  readonly #again: Alarm = new Alarm(() => this.#tryAgain());
  readonly #patience: Alarm = new Alarm(() => void this.#giveBack());
  readonly #backoff: Backoffs = new Backoffs(100, 10_000);
  readonly #whenIdle: (() => void)[] = [];
  readonly #settleDone: { resolve: () => void; reject: (error: Error) => void };
  #running = 0;
  #releasing = 0;
  /** A claim may find something: true until one came back with less than it asked for. */
  #isHungry = false;
  #isClaiming = false;
  #wasOffered = false;
  #isTurnComing = false;
  #isStopping = false;
  /** Patience is over: what cannot be finished now is left to lapse. */
  #isGivingUp = false;
  #isDone = false;
  #unwatch: () => void = () => {};
  #unlink: () => void = () => {};

  /** Made by `startWorker`. */
  constructor(queue: QueueHandle<never, T>, handler: Handler<T>, settings: LoopSettings) {
    this.#queue = queue;
    this.#context = queue.context;
    this.#handler = handler;
    this.#settings = settings;
    this.#held = new Heartbeats(queue.context, queue.key);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.done = promise;
    this.#settleDone = { resolve, reject };
    // A caller who never looks at `done` must not be ended by it.
    promise.catch(() => {});
  }

  /** Begins to wait for work; stops when `signal` aborts. */
  start(signal: AbortSignal | undefined): void {
    this.#context.loops.add(this);
    const stop = () => void this.stop().catch(() => {});
    signal?.addEventListener("abort", stop, { once: true });
    this.#unlink = () => signal?.removeEventListener("abort", stop);
    if (signal?.aborted === true) stop();
    void this.#arm();
  }

  async stop(options?: StopOptions): Promise<void> {
    await this.halt(checkDrain(options, "Cannot stop worker"));
  }

  async halt(patience: number): Promise<void> {
    if (this.#isDone) return await this.done;
    this.#isStopping = true;
    this.#unwatch();
    this.#unlink();
    // Work that was offered to this one and not taken yet is another one's now.
    if (this.#isHungry) this.#context.poller.look(this.#queue.key);
    if (patience === 0) void this.#giveBack();
    else this.#patience.setEarlier(patience);
    this.#checkIdle();
    await this.done;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.halt(DEFAULT_DRAIN).catch(() => {});
  }

  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve);
      this.#checkIdle();
    });
  }

  offer(): boolean {
    this.#isHungry = true;
    if (this.#isClaiming) {
      this.#wasOffered = true;
      return true;
    }
    if (!this.#mayClaim) return false;
    this.#turnSoon();
    return true;
  }

  end(cause: Error): void {
    this.#isStopping = true;
    this.#finish(new ClosedError("Cannot work: the wake source died", { cause }));
  }

  get #mayClaim(): boolean {
    return !this.#isStopping && !this.#context.isDraining && !this.#isClaiming &&
      this.#running < this.#settings.concurrency;
  }

  async #arm(): Promise<void> {
    while (!this.#isStopping) {
      try {
        const unwatch = await this.#context.poller.watch(this.#queue.key, this);
        if (this.#isStopping) unwatch();
        else this.#unwatch = unwatch;
        return;
      } catch (error) {
        if (error instanceof ClosedError) return this.end(error);
        this.#context.events.error(error);
        await this.#pause();
      }
    }
  }

  /** Waits before the next attempt to arm, but not past the end of the loop. */
  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const alarm = new Alarm(resolve);
      alarm.set(this.#backoff.next());
      void this.done.catch(() => {}).then(() => alarm.clear()).then(resolve);
    });
  }

  /** After an outage: acks what is waiting, and looks for work. */
  #tryAgain(): void {
    this.#isHungry = true;
    this.#turnSoon();
  }

  /** What happens in one turn of the event loop is one transaction. */
  #turnSoon(): void {
    if (this.#isTurnComing || this.#isDone) return;
    this.#isTurnComing = true;
    queueMicrotask(() => {
      this.#isTurnComing = false;
      if (this.#finished.length > 0) void this.#ack(this.#finished.splice(0));
      if (this.#isHungry && this.#mayClaim) void this.#claim();
      this.#checkIdle();
    });
  }

  async #claim(): Promise<void> {
    const free = this.#settings.concurrency - this.#running;
    this.#isClaiming = true;
    this.#wasOffered = false;
    try {
      const { session } = this.#context.engine;
      const jobs = await this.#queue.claim(session, this.#settings.worker, free);
      this.#backoff.reset();
      this.#isHungry = jobs.length === free || this.#wasOffered;
      if (this.#isStopping || this.#context.isDraining) await this.#release(jobs);
      else for (const job of jobs) void this.#run(job);
      // There may be more than we can take: the next worker of this process is to look.
      if (jobs.length === free) this.#context.poller.lookForOthers(this.#queue.key);
    } catch (error) {
      this.#context.events.error(error);
      this.#isHungry = false;
      this.#again.setEarlier(this.#backoff.next());
    } finally {
      this.#isClaiming = false;
      this.#turnSoon();
    }
  }

  async #run(job: JobHandle<T>): Promise<void> {
    this.#running++;
    this.#held.add(job);
    if (await this.#attempt(job)) this.#finished.push(job);
    else this.#held.delete(job);
    this.#running--;
    this.#turnSoon();
  }

  /** Runs the handler; whether the job is still to be acked. */
  async #attempt(job: JobHandle<T>): Promise<boolean> {
    if (this.#handler.isTransactional) {
      await runTxAttempt(this.#context, job, this.#handler.run);
      return false;
    }
    const attempt = await runAttempt(job, this.#handler.run);
    if (typeof attempt === "object") await giveUp(job, attempt.error);
    return attempt === "succeeded";
  }

  /** Acks what finished; in an outage again and again, until the leases have lapsed. */
  async #ack(jobs: readonly JobHandle<T>[]): Promise<void> {
    for (const job of jobs) this.#acking.add(job);
    try {
      const { session } = this.#context.engine;
      const landed = new Set(await session.ack(this.#queue.key, jobs.map((job) => job.ref())));
      this.#queue.settle(jobs, landed);
      for (const job of jobs) this.#held.delete(job);
    } catch (error) {
      this.#context.events.error(error);
      for (const job of jobs) {
        if (job.isAborted || this.#isGivingUp) this.#held.delete(job);
        else this.#finished.push(job);
      }
      this.#again.setEarlier(this.#backoff.next());
    }
    for (const job of jobs) this.#acking.delete(job);
    this.#turnSoon();
  }

  async #release(jobs: readonly JobHandle<T>[]): Promise<void> {
    if (jobs.length === 0) return;
    const { session } = this.#context.engine;
    this.#releasing++;
    try {
      await session.release(this.#queue.key, jobs.map((job) => job.ref()));
    } catch (error) {
      // They come back when their leases lapse.
      this.#context.events.error(error);
    }
    this.#releasing--;
  }

  /** Patience is over: tells the handlers and gives their jobs back without spending the attempt. */
  async #giveBack(): Promise<void> {
    this.#isGivingUp = true;
    // What finished is acked, not given back.
    if (this.#finished.length > 0) void this.#ack(this.#finished.splice(0));
    const jobs = [...this.#held.jobs()].filter((job) =>
      job.ending === undefined && !this.#acking.has(job)
    );
    for (const job of jobs) {
      job.ended(false);
      job.abort(new JobAbortError("shutdown", job.queue, job.id));
    }
    await this.#release(jobs);
    for (const job of jobs) this.#held.delete(job);
    this.#checkIdle();
  }

  #checkIdle(): void {
    // Not before the release has landed: the store may be closed right after.
    if (this.#held.size > 0 || this.#isClaiming || this.#releasing > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
    if (this.#isStopping) this.#finish(undefined);
  }

  #finish(error: Error | undefined): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#unwatch();
    this.#unlink();
    this.#held.close();
    this.#again.clear();
    this.#patience.clear();
    this.#context.loops.delete(this);
    if (error === undefined) this.#settleDone.resolve();
    else this.#settleDone.reject(error);
  }
}
