import type { Context } from "./context.ts";
import type { JobHandle } from "./job_handle.ts";
import { Alarm } from "./timers.ts";

/** How much of the visibility passes between two heartbeats. */
const BEATS_PER_LEASE = 3;

/** Extends the claims of one worker loop while their handlers run: one timer, one call for all. */
export class Heartbeats<T> {
  readonly #context: Context;
  readonly #queue: string;
  /** The claims, and when each is to be extended, by the monotonic clock. */
  readonly #dueAt: Map<JobHandle<T>, number> = new Map();
  readonly #beat: Alarm = new Alarm(() => void this.#extendDue());
  /** When blocking was last reported: once for all that it made late. */
  #warnedAt = -Infinity;
  #isClosed = false;

  /** Made by the loop; `queue` is the key the jobs are stored under. */
  constructor(context: Context, queue: string) {
    this.#context = context;
    this.#queue = queue;
  }

  /** How many claims are held. */
  get size(): number {
    return this.#dueAt.size;
  }

  /** The claims. */
  jobs(): IterableIterator<JobHandle<T>> {
    return this.#dueAt.keys();
  }

  /** Extends the claim of `job` until it is deleted. */
  add(job: JobHandle<T>): void {
    job.watch();
    const period = job.visibility / BEATS_PER_LEASE;
    this.#dueAt.set(job, performance.now() + period);
    this.#beat.setEarlier(period);
  }

  /** The claim is finished or lost. */
  delete(job: JobHandle<T>): void {
    // Before its beat could: a handler may end right after it has blocked.
    this.#warnOfBlockedLoop([job], performance.now());
    // The alarm stays: the next job is about to come, and an idle ring costs nothing.
    this.#dueAt.delete(job);
  }

  /** Extends nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#dueAt.clear();
    this.#beat.clear();
  }

  async #extendDue(): Promise<void> {
    const now = performance.now();
    const due: JobHandle<T>[] = [];
    for (const [job, dueAt] of this.#dueAt) {
      // Those that are nearly due go along.
      if (dueAt - now < job.visibility / BEATS_PER_LEASE / 4) due.push(job);
    }
    this.#warnOfBlockedLoop(due, now);
    const live = due.filter((job) => job.ending === undefined && !job.isAborted);
    for (const job of due) this.#dueAt.set(job, now + job.visibility / BEATS_PER_LEASE);
    if (live.length > 0) await this.#extend(live, now);
    if (!this.#isClosed) this.#rearm();
  }

  async #extend(jobs: readonly JobHandle<T>[], startedAt: number): Promise<void> {
    const { engine, claims, events } = this.#context;
    const refs = jobs.map((job) => ({ ...job.ref(), extend: job.visibility }));
    try {
      const landed = new Set(await engine.session.heartbeat(this.#queue, refs));
      for (const job of jobs) {
        if (landed.has(job.id)) job.extended(startedAt, job.visibility);
        else if (job.ending === undefined) await claims.lost(job);
      }
    } catch (error) {
      // The next beat tries again; when none lands, our own clock ends the claims.
      events.error(error);
      for (const job of jobs) this.#dueAt.set(job, performance.now() + job.visibility / 20);
    }
  }

  #rearm(): void {
    const now = performance.now();
    let next = Infinity;
    for (const dueAt of this.#dueAt.values()) next = Math.min(next, dueAt - now);
    this.#beat.set(Math.max(next, 0));
  }

  /** A handler that blocks the event loop also blocks its own heartbeats: say so, with the delay. */
  #warnOfBlockedLoop(due: readonly JobHandle<T>[], now: number): void {
    for (const job of due) {
      const late = now - (this.#dueAt.get(job) ?? now);
      if (late > job.visibility / BEATS_PER_LEASE && now - this.#warnedAt > late) {
        this.#warnedAt = now;
        this.#context.events.emit({
          type: "degraded",
          reason:
            `heartbeats of queue ${JSON.stringify(this.#queue)} were late: the event loop was ` +
            `blocked for about ${Math.round(late)} ms`,
        });
        return;
      }
    }
  }
}
