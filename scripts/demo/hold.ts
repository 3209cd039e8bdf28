/**
 * How a worker comes to hold claims for certain when it is killed.
 *
 * @module
 */

import { say } from "./messages.ts";

/** Milliseconds after the first claim at which it is enough, whatever is held. */
const PATIENCE = 2_000;

/**
 * Once started, keeps every claim and finishes none, until the process is killed. It says so when it
 * keeps as many as it can and is also inside a transaction.
 */
export class Hold {
  readonly #most: number;
  readonly #jobs: number[] = [];
  #isOn = false;
  #hasSaid = false;

  /** Keeps `most` claims. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Whether claims are to be kept. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Keeps claims from now on. */
  start(): void {
    this.#isOn = true;
  }

  /**
   * Keeps the claim of a job. Every other job is sent before, and so will be sent again; the ones
   * between are not, and must not be lost.
   */
  keep(job: number, send: () => void): Promise<never> {
    this.#jobs.push(job);
    if (this.#jobs.length === 1) setTimeout(() => this.#say(false), PATIENCE);
    if (this.#jobs.length % 2 === 1) send();
    return forever();
  }

  /** Keeps a transaction open when all claims are held. */
  async keepTransaction(): Promise<void> {
    if (this.#jobs.length < this.#most) return;
    this.#say(true);
    await forever();
  }

  #say(isProjecting: boolean): void {
    if (this.#hasSaid) return;
    this.#hasSaid = true;
    say({ type: "holding", jobs: this.#jobs, isProjecting });
  }
}

function forever(): Promise<never> {
  return new Promise(() => {});
}
