/**
 * What happened, as the messages told it and as it is found in the end.
 *
 * @module
 */

import type { QueueStats, StoreStatus } from "../../mod.ts";
import type { Message } from "./messages.ts";
import { type Order, readOrders } from "./order.ts";
import { CONSUMER } from "./projection.ts";
import { readSent, type Sent } from "./sent.ts";
import type { OrderPlaced, Place, Revenue, Shop } from "./shop.ts";

/** How many events are read at once. */
const PAGE = 500;

/** What the processes told. */
export class Journal {
  /** When the commit of each order had returned, in the order of the commits. */
  readonly placed: Map<string, number> = new Map();
  /** Orders that were rolled back for good. */
  readonly refused: Set<string> = new Set();
  /** When workers were woken by pings, in the order in which they told it. */
  readonly woken: number[] = [];
  /** Lines for a log, each with how often it came. */
  readonly trouble: Map<string, number> = new Map();
  /** How many transactions were rolled back. */
  rollbacks = 0;
  /** How often a worker projected what the other one had projected. */
  lostRaces = 0;

  /** Writes a message down. */
  note(message: Message, from: string): void {
    switch (message.type) {
      case "placed":
        this.placed.set(message.order, message.at);
        break;
      case "rolled-back":
        this.rollbacks++;
        if (message.isRefused) this.refused.add(message.order);
        break;
      case "woken":
        this.woken.push(message.at);
        break;
      case "stopped":
        this.lostRaces += message.lostRaces;
        break;
      case "trouble": {
        const line = `${from}: ${message.text}`;
        this.trouble.set(line, (this.trouble.get(line) ?? 0) + 1);
        break;
      }
    }
  }
}

/** How the killed worker ended. */
export interface Kill {
  readonly worker: string;
  /** The signal it died of. */
  readonly signal: string | null;
  /** When, see `now()`. */
  readonly at: number;
  /** How many orders were committed at that time. */
  readonly placed: number;
  /** The invoices it had claimed. */
  readonly jobs: readonly number[];
  /** Whether it stood inside a transaction of the projection. */
  readonly wasProjecting: boolean;
}

/** All that can be looked at when everybody has stopped. */
export interface Facts {
  readonly journal: Journal;
  /** Milliseconds a sync of the disk took before all this. */
  readonly syncTime: number;
  readonly kill: Kill;
  /** Milliseconds from each ping to the first wake; infinite where none came. */
  readonly pings: readonly number[];
  /** The orders that were to be taken, from the file. */
  readonly orders: readonly Order[];
  /** The ids in the table `orders`. */
  readonly rows: readonly string[];
  /** The events of the stream, in its order. */
  readonly events: readonly OrderPlaced[];
  readonly revenue: readonly Revenue[];
  /** How many events the projection has still before it. */
  readonly lag: number;
  readonly sent: readonly Sent[];
  readonly mails: QueueStats;
  readonly invoices: QueueStats;
  readonly status: StoreStatus;
}

/** Reads the database and the files. */
export async function gatherFacts(
  shop: Shop,
  place: Place,
  count: number,
  told: Pick<Facts, "journal" | "syncTime" | "kill" | "pings">,
): Promise<Facts> {
  const [rows, revenue] = await shop.transaction(async (_, tables) =>
    [await tables.listOrders(), await tables.listRevenue()] as const
  );
  return {
    ...told,
    orders: await readOrders(count),
    rows,
    events: await readEvents(shop),
    revenue,
    ...await readWaiting(shop),
    sent: await readSent(place.folder),
    status: await shop.store.status(),
  };
}

/** What is still to be done. */
export type Waiting = Pick<Facts, "mails" | "invoices" | "lag">;

/** Reads what is still to be done. */
export async function readWaiting(shop: Shop): Promise<Waiting> {
  const { head, consumers } = await shop.placed.info();
  return {
    mails: await shop.mails.stats(),
    invoices: await shop.invoices.stats(),
    lag: consumers.find(({ name }) => name === CONSUMER)?.lag ?? head,
  };
}

/** How many jobs of a queue are not finished and not dead. */
export function countLeft({ ready, scheduled, claimed }: QueueStats): number {
  return ready + scheduled + claimed;
}

async function readEvents(shop: Shop): Promise<OrderPlaced[]> {
  const events: OrderPlaced[] = [];
  for (let offset = 0;;) {
    const page = await shop.placed.readSince(offset, PAGE);
    events.push(...page.map((event) => event.payload));
    offset = page.at(-1)?.offset ?? offset;
    if (page.length < PAGE) return events;
  }
}
