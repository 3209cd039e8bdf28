import type { RootSession, WakeSource } from "./engine.ts";
import type { EventHub } from "./events.ts";
import { outsideScopes } from "./scope.ts";
import { Alarm } from "./timers.ts";

/**
 * Why the `signal` of a job was aborted: the `reason` of the signal.
 *
 * @example
 * ```ts
 * import { JobAbortError } from "@alkstore/alkstore";
 *
 * const error = new JobAbortError("cancelled", "mail", 7);
 * console.log(error.reason, error.jobId);
 * ```
 */
export class JobAbortError extends Error {
  /** `"JobAbortError"`. */
  override readonly name = "JobAbortError";
  /**
   * `lease-lost`: the claim lapsed or was taken, the job may already run elsewhere. `cancelled`: the
   * job was cancelled. `shutdown`: the worker or store stops and gives the job back.
   */
  readonly reason: "lease-lost" | "cancelled" | "shutdown";
  /** The job's id. */
  readonly jobId: number;

  /** Made by the store. */
  constructor(reason: "lease-lost" | "cancelled" | "shutdown", queue: string, jobId: number) {
    super(`The claim of job ${jobId} of queue ${JSON.stringify(queue)} ended: ${reason}`);
    this.reason = reason;
    this.jobId = jobId;
  }
}

/** A claim somebody here works under. */
export interface HeldClaim {
  readonly queue: string;
  readonly id: number;
  readonly claim: number;
  /** When the lease ends by our own monotonic clock, in milliseconds; moves with heartbeats. */
  readonly leaseEndsAt: number;
  /** Tells the handler that the claim has ended. */
  abort(reason: JobAbortError): void;
}

/** The claims of one queue, and how to stop listening for cancels. */
interface HeldQueue {
  readonly claims: Set<HeldClaim>;
  unwatch: () => void;
}

/**
 * Watches over the claims handlers work under: tells them when the lease ends by our own clock, even
 * when no query returns any more, and when somebody cancels the job in any process.
 */
export class Claims {
  readonly #session: RootSession;
  readonly #wakes: WakeSource;
  readonly #events: EventHub;
  readonly #queues: Map<string, HeldQueue> = new Map();
  readonly #lapse: Alarm = new Alarm(() => this.#endLapsed(), true);

  /** Made by the store. */
  constructor(session: RootSession, wakes: WakeSource, events: EventHub) {
    this.#session = session;
    this.#wakes = wakes;
    this.#events = events;
  }

  /** Watches over a claim until it is dropped. */
  add(claim: HeldClaim): void {
    let held = this.#queues.get(claim.queue);
    if (held === undefined) {
      held = { claims: new Set(), unwatch: () => {} };
      this.#queues.set(claim.queue, held);
      const entry = held;
      outsideScopes(() => void this.#listen(claim.queue, entry));
    }
    held.claims.add(claim);
    this.#lapse.setEarlier(claim.leaseEndsAt - performance.now());
  }

  /** The claim may have ended before it was watched over: looks, and tells the handler. */
  check(claim: HeldClaim): void {
    outsideScopes(() => void this.#verify([claim]));
  }

  /** The claim has ended by a call of its holder. */
  drop(claim: HeldClaim): void {
    const held = this.#queues.get(claim.queue);
    if (held === undefined || !held.claims.delete(claim)) return;
    if (held.claims.size > 0) return;
    // The queue's entry stays until the next turn: a worker takes the next job at once.
    queueMicrotask(() => this.#forget(claim.queue, held));
  }

  /** The claim is not ours any more: finds out why, and tells the handler. */
  async lost(claim: HeldClaim): Promise<void> {
    let reason: JobAbortError["reason"] = "lease-lost";
    try {
      const { rows } = await this.#session.job(claim.queue, claim.id);
      if (rows.length === 0) reason = "cancelled";
    } catch {
      // Lost is lost; only the reason stays a guess.
    }
    this.#end(claim, reason);
  }

  /** Tells every handler that the store stops. */
  close(): void {
    this.#lapse.clear();
    for (const [queue, held] of this.#queues) {
      held.unwatch();
      this.#queues.delete(queue);
      for (const claim of held.claims) {
        claim.abort(new JobAbortError("shutdown", claim.queue, claim.id));
      }
    }
  }

  #end(claim: HeldClaim, reason: JobAbortError["reason"]): void {
    if (this.#queues.get(claim.queue)?.claims.has(claim) !== true) return;
    this.drop(claim);
    this.#events.emit({ type: "lease-lost", queue: claim.queue, id: claim.id });
    claim.abort(new JobAbortError(reason, claim.queue, claim.id));
  }

  #forget(queue: string, held: HeldQueue): void {
    if (held.claims.size > 0 || this.#queues.get(queue) !== held) return;
    this.#queues.delete(queue);
    held.unwatch();
    if (this.#queues.size === 0) this.#lapse.clear();
  }

  async #listen(queue: string, held: HeldQueue): Promise<void> {
    try {
      const unwatch = await this.#wakes.watch(`claims:${queue}`, {
        wake: () => void this.#verify(held.claims),
        end: () => {},
      });
      if (this.#queues.get(queue) !== held) return unwatch();
      held.unwatch = unwatch;
      // A cancel while it was being armed told nobody.
      await this.#verify(held.claims);
    } catch {
      // Without wakes the next heartbeat finds out.
    }
  }

  /** Some claim of the queue was taken: is it one of these? */
  async #verify(claims: Iterable<HeldClaim>): Promise<void> {
    for (const claim of [...claims]) {
      try {
        const { rows } = await this.#session.job(claim.queue, claim.id);
        const row = rows[0];
        if (row === undefined) this.#end(claim, "cancelled");
        else if (row.claim !== claim.claim) this.#end(claim, "lease-lost");
      } catch (error) {
        this.#events.error(error);
        return;
      }
    }
  }

  #endLapsed(): void {
    let next = Infinity;
    const now = performance.now();
    for (const held of [...this.#queues.values()]) {
      for (const claim of [...held.claims]) {
        if (claim.leaseEndsAt <= now) this.#end(claim, "lease-lost");
        else next = Math.min(next, claim.leaseEndsAt - now);
      }
    }
    this.#lapse.set(next);
  }
}
