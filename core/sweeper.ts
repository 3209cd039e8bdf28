import type { RootSession } from "./engine.ts";
import type { EventHub } from "./events.ts";
import { outsideScopes } from "./scope.ts";
import { Alarm } from "./timers.ts";

/** How many rows one step moves: each step is one transaction. */
const STEP = 500;

/**
 * Moves lapsed claims and expired jobs of all queues to where they belong, little and often, also in a
 * process that only enqueues. Waits for work and claims do not depend on it.
 */
export class Sweeper {
  readonly #session: RootSession;
  readonly #events: EventHub;
  readonly #interval: number;
  readonly #alarm: Alarm = new Alarm(() => void this.#sweep(), true);
  #isClosed = false;

  /** Starts; `interval` milliseconds, spread by ±20 % so that processes do not sweep in step. */
  constructor(session: RootSession, events: EventHub, interval: number) {
    this.#session = session;
    this.#events = events;
    this.#interval = interval;
    outsideScopes(() => this.#rearm());
  }

  /** Sweeps no more. */
  close(): void {
    this.#isClosed = true;
    this.#alarm.clear();
  }

  async #sweep(): Promise<void> {
    try {
      while (!this.#isClosed && await this.#session.sweep(undefined, STEP) >= STEP);
      if (!this.#isClosed) await this.#session.maintain();
    } catch (error) {
      if (!this.#isClosed) this.#events.error(error);
    }
    this.#rearm();
  }

  #rearm(): void {
    if (!this.#isClosed) this.#alarm.set(this.#interval * (0.8 + Math.random() * 0.4));
  }
}
