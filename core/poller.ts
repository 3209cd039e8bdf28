import type { RootSession, Topic, WakeSource } from "./engine.ts";
import type { EventHub } from "./events.ts";
import { outsideScopes } from "./scope.ts";
import { Alarm, Backoffs } from "./timers.ts";

/** Somebody who would claim jobs of a queue. */
export interface Waiter {
  /** There may be work. Answers whether it will try to claim: a busy one looks later by itself. */
  offer(): boolean;
  /** The wake source died for good. */
  end(cause: Error): void;
}

/** The least time between two looks that only serve to learn new deadlines, in milliseconds. */
const DEADLINE_PAUSE = 100;

/** The waiters of one queue. */
interface WaitingQueue {
  readonly waiters: Set<Waiter>;
  unwatch: () => void;
}

/**
 * Tells the waiters of all queues when there is work: on a wake, and when a run time comes or a lease
 * ends. One probe answers for all queues at once, one waiter is offered the work at a time, and one
 * timer serves all deadlines, so that neither queues nor waiters multiply the queries.
 */
export class Poller {
  readonly #session: RootSession;
  readonly #wakes: WakeSource;
  readonly #events: EventHub;
  readonly #queues: Map<string, WaitingQueue> = new Map();
  readonly #dirty: Set<string> = new Set();
  readonly #deadline: Alarm = new Alarm(() => this.#lookAtAll());
  readonly #refresh: Alarm = new Alarm(() => this.#lookAtAll());
  readonly #retry: Alarm = new Alarm(() => this.#lookAtAll());
  readonly #backoff: Backoffs = new Backoffs(100, 10_000);
  #lookedAt = 0;
  #isLooking = false;
  #isClosed = false;

  /** Made by the store. */
  constructor(session: RootSession, wakes: WakeSource, events: EventHub) {
    this.#session = session;
    this.#wakes = wakes;
    this.#events = events;
  }

  /** Offers `waiter` the work of `queue` until the returned function is called. */
  async watch(queue: string, waiter: Waiter): Promise<() => void> {
    const entry = this.#queues.get(queue) ?? { waiters: new Set(), unwatch: () => {} };
    entry.waiters.add(waiter);
    if (!this.#queues.has(queue)) {
      this.#queues.set(queue, entry);
      try {
        await this.#arm(queue, entry);
      } catch (error) {
        this.#leave(queue, entry, waiter);
        throw error;
      }
    }
    this.look(queue);
    return () => this.#leave(queue, entry, waiter);
  }

  /** Looks whether the queue has work, soon: calls of one turn are one look. */
  look(queue: string): void {
    if (!this.#queues.has(queue) || this.#isClosed) return;
    this.#dirty.add(queue);
    if (this.#isLooking) return;
    this.#isLooking = true;
    outsideScopes(() => queueMicrotask(() => void this.#lookUntilClean()));
  }

  /** One waiter took all it could: another one of this process may take what is left. */
  lookForOthers(queue: string): void {
    if ((this.#queues.get(queue)?.waiters.size ?? 0) > 1) this.look(queue);
  }

  /** Offers nothing more and leaves no timer. */
  close(): void {
    this.#isClosed = true;
    this.#clearAlarms();
    for (const entry of this.#queues.values()) entry.unwatch();
    this.#queues.clear();
  }

  async #arm(queue: string, entry: WaitingQueue): Promise<void> {
    const topics: [Topic, () => void][] = [
      [`queue:${queue}`, () => this.look(queue)],
      ["deadlines:", () => this.#lookForDeadlines()],
    ];
    for (const [topic, wake] of topics) {
      const unwatch = await this.#wakes.watch(topic, {
        wake,
        end: (cause) => {
          for (const waiter of [...entry.waiters]) waiter.end(cause);
        },
      });
      const others = entry.unwatch;
      entry.unwatch = () => {
        others();
        unwatch();
      };
    }
    // The last waiter left while it was being armed.
    if (this.#queues.get(queue) !== entry) entry.unwatch();
  }

  #leave(queue: string, entry: WaitingQueue, waiter: Waiter): void {
    entry.waiters.delete(waiter);
    if (entry.waiters.size > 0 || this.#queues.get(queue) !== entry) return;
    this.#queues.delete(queue);
    this.#dirty.delete(queue);
    entry.unwatch();
    if (this.#queues.size === 0) this.#clearAlarms();
  }

  #clearAlarms(): void {
    for (const alarm of [this.#deadline, this.#refresh, this.#retry]) alarm.clear();
  }

  #lookAtAll(): void {
    for (const queue of this.#queues.keys()) this.look(queue);
  }

  /** Run times and lease ends are ahead, if only a little: many changes are one look. */
  #lookForDeadlines(): void {
    const pause = DEADLINE_PAUSE - (performance.now() - this.#lookedAt);
    if (pause <= 0) this.#lookAtAll();
    else this.#refresh.setEarlier(pause);
  }

  async #lookUntilClean(): Promise<void> {
    try {
      while (this.#dirty.size > 0 && !this.#isClosed) await this.#lookOnce();
      this.#backoff.reset();
    } catch (error) {
      // An outage: keep trying, work waits for nobody to restart us.
      if (!this.#isClosed) {
        this.#events.error(error);
        this.#retry.set(this.#backoff.next());
      }
    } finally {
      this.#isLooking = false;
    }
  }

  async #lookOnce(): Promise<void> {
    const queues = [...this.#dirty];
    this.#dirty.clear();
    this.#lookedAt = performance.now();
    const answers = await this.#session.pending(queues);
    for (const { queue, claimable, nextIn } of answers) {
      if (nextIn !== undefined && this.#queues.has(queue)) this.#deadline.setEarlier(nextIn);
      if (claimable) this.#offer(queue);
    }
  }

  /** Offers the work to one waiter that takes it; it will ask us to look again if it found plenty. */
  #offer(queue: string): void {
    const waiters = this.#queues.get(queue)?.waiters ?? [];
    for (const waiter of [...waiters]) {
      if (waiter.offer()) {
        // To the end of the line: the next offer is another one's.
        if (this.#queues.get(queue)?.waiters.delete(waiter)) {
          this.#queues.get(queue)?.waiters.add(waiter);
        }
        return;
      }
    }
  }
}
