/**
 * The course of the demo, from the first process to the last.
 *
 * @module
 */

import { measureSync } from "./disk.ts";
import { countLeft, type Facts, gatherFacts, Journal, type Kill, readWaiting } from "./facts.ts";
import { Member } from "./member.ts";
import { delay, HOLD, type Message, now, PING } from "./messages.ts";
import { openShop } from "./open.ts";
import { Progress } from "./progress.ts";
import { prepareSending } from "./sent.ts";
import type { Place, Shop } from "./shop.ts";

/** Milliseconds after which nothing more is waited for: what is missing then is lost or too slow. */
const PATIENCE = 23_000;

/** Milliseconds between two looks at what is left. */
const LOOK = 100;

/**
 * Milliseconds a sync of the disk may take: there are thousands of commits, one after the other. On a
 * slower one they do not wait for it.
 */
const SYNC_LIMIT = 2;

/** How many wakes are timed when all is quiet. */
const PINGS = 30;

/** Milliseconds a ping has to wake somebody. */
const PING_PATIENCE = 2_000;

/**
 * Milliseconds between two pings. Who has just found something soon looks again by itself; after this
 * time it takes a wake.
 */
const PING_PAUSE = 100;

/** One run of the demo. */
export class Run {
  #place: Place;
  readonly #count: number;
  readonly #journal: Journal = new Journal();
  readonly #members: Member[] = [];
  readonly #deadline: number = performance.now() + PATIENCE;
  #scene = "starting";
  #left = "";

  /** Starts nothing. */
  constructor(place: Place, count: number) {
    this.#place = place;
    this.#count = count;
  }

  /** Goes through all of it and gives what happened. */
  async play(): Promise<Facts> {
    const syncTime = await measureSync(this.#place.folder);
    if (syncTime > SYNC_LIMIT) this.#place = { ...this.#place, isDurable: false };
    await prepareSending(this.#place.folder);
    const shop = await openShop(this.#place);
    const progress = new Progress(() => this.#describe());
    try {
      await shop.transaction((_, tables) => tables.create());
      const told = await this.#trade(shop);
      return await gatherFacts(shop, this.#place, this.#count, {
        journal: this.#journal,
        syncTime,
        ...told,
      });
    } finally {
      progress.stop();
      await shop.store.close();
    }
  }

  /** Kills every process of the run; resolves when they are gone. */
  async abort(): Promise<void> {
    for (const member of this.#members) member.kill();
    await Promise.all(this.#members.map((member) => member.status));
  }

  /** Takes and handles the orders, with the kill in the middle and the pings in the end. */
  async #trade(shop: Shop): Promise<Pick<Facts, "kill" | "pings">> {
    const victim = this.#startWorker("worker-1");
    const other = this.#startWorker("worker-2");
    for (const worker of [victim, other]) await this.#inTime(worker.first("ready"), "its start");

    this.#scene = "orders come in";
    const producer = this.#start("producer", "producer.ts", String(this.#count));
    await this.#inTime(producer.first("rush"), "the rush");
    const kill = await this.#killInTheMiddle(victim);
    const replacement = this.#startWorker("worker-3");
    this.#scene += ", worker-3 in its place";

    const { success } = await this.#inTime(producer.status, "the last order");
    if (!success) throw new Error("The producer failed");
    await this.#settle(shop);
    const pings = await this.#ping(shop);
    for (const { success } of await Promise.all([other.end(), replacement.end()])) {
      if (!success) throw new Error("A worker did not stop by itself");
    }
    return { kill, pings };
  }

  /** Kills a worker that holds claims, at the moment it says so. */
  async #killInTheMiddle(victim: Member): Promise<Kill> {
    await victim.send(HOLD);
    const { jobs, isProjecting } = await this.#inTime(victim.first("holding"), "claims to be held");
    victim.kill();
    const at = now();
    const { placed } = this.#journal;
    this.#scene = `${victim.name} killed with ${jobs.length} claims`;
    const { signal } = await victim.status;
    return {
      worker: victim.name,
      signal,
      at,
      placed: placed.size,
      jobs,
      wasProjecting: isProjecting,
    };
  }

  /** Waits until nothing is left to do; gives up at the deadline, and the checks will say why. */
  async #settle(shop: Shop): Promise<void> {
    while (performance.now() < this.#deadline) {
      const { mails, invoices, lag } = await readWaiting(shop);
      const [mailsLeft, invoicesLeft] = [countLeft(mails), countLeft(invoices)];
      this.#left = ` | left: ${mailsLeft} mails, ${invoicesLeft} invoices, ${lag} events`;
      if (mailsLeft + invoicesLeft + lag === 0) return;
      await delay(LOOK);
    }
  }

  /** Wakes the workers again and again, each time after they have told that they are. */
  async #ping(shop: Shop): Promise<number[]> {
    this.#scene = "timing wakes";
    const latencies: number[] = [];
    const { woken } = this.#journal;
    while (latencies.length < PINGS && performance.now() < this.#deadline) {
      const known = woken.length;
      await shop.store.notify(PING);
      const at = now();
      while (woken.length === known && now() - at < PING_PATIENCE) await delay(1);
      latencies.push(Math.max((woken[known] ?? Infinity) - at, 0));
      await delay(PING_PAUSE);
    }
    return latencies;
  }

  #startWorker(name: string): Member {
    return this.#start(name, "worker.ts", name);
  }

  #start(name: string, script: string, argument: string): Member {
    const note = (message: Message, from: Member) => this.#journal.note(message, from.name);
    const member = new Member(name, script, this.#place, argument, note);
    this.#members.push(member);
    return member;
  }

  async #inTime<T>(promise: Promise<T>, what: string): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`Gave up ${PATIENCE / 1_000} s after the start, waiting for ${what}`)),
      this.#deadline - performance.now(),
    );
    return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
  }

  #describe(): string {
    const { placed, refused, rollbacks } = this.#journal;
    const taken = `${placed.size + refused.size} of ${this.#count} orders`;
    return `${taken}, ${rollbacks} rolled back${this.#left} | ${this.#scene}`;
  }
}
