/**
 * The shop of the demo: what its processes share, whichever engine is behind it.
 *
 * @module
 */

import type { JoinedTx, Outbox, Queue, Store, Stream } from "../../mod.ts";
import type { Order } from "./order.ts";

/** Where the shop's data is, and how it is kept. */
export interface Place {
  readonly engine: EngineName;
  /** A folder of this run alone. */
  readonly folder: string;
  /** Whether commits are to survive a power loss, as is the default, or only the end of a process. */
  readonly isDurable: boolean;
}

/** The engines the demo runs on. */
export const engineNames = ["sqlite"] as const;

/** An engine the demo runs on. */
export type EngineName = typeof engineNames[number];

/** Tells whether a text names one of {@linkcode engineNames}. */
export function isEngineName(text: string): text is EngineName {
  return engineNames.some((name) => name === text);
}

/** Writes a place as the first arguments of a process, see {@linkcode readPlace}. */
export function writePlace({ engine, folder, isDurable }: Place): string[] {
  return [engine, folder, String(isDurable)];
}

/** Reads a place from the first arguments of a process, and gives the one behind it, too. */
export function readPlace(args: readonly string[]): { place: Place; argument: string } {
  const [engine = "", folder = "", isDurable, argument = ""] = args;
  if (!isEngineName(engine)) throw new TypeError(`Cannot open the shop: no engine "${engine}"`);
  return { place: { engine, folder, isDurable: isDurable === "true" }, argument };
}

/** A mail to a customer, in the outbox. */
export interface Mail {
  readonly order: string;
  readonly to: string;
  readonly subject: string;
}

/** An invoice to be sent, in a queue. */
export interface Invoice {
  readonly order: string;
  readonly to: string;
  readonly totalCents: number;
}

/** An order was placed: an event of the stream. */
export interface OrderPlaced {
  readonly order: string;
  readonly country: string;
  readonly day: string;
  readonly totalCents: number;
}

/** What one country brought in on one day: a row of the projection. */
export interface Revenue {
  readonly country: string;
  readonly day: string;
  readonly orders: number;
  readonly cents: number;
}

/** The shop's own tables, in one transaction. */
export interface Tables {
  /** Creates the tables `orders` and `revenue`. */
  create(): Promise<void>;
  insertOrder(order: Order): Promise<void>;
  /** Adds one order to the revenue of its country and day. */
  addRevenue(placed: OrderPlaced): Promise<void>;
  /** The ids of the orders, ascending. */
  listOrders(): Promise<string[]>;
  /** The projection, by country and day. */
  listRevenue(): Promise<Revenue[]>;
}

/** The shop: its messages, and its tables in the same database. */
export interface Shop {
  readonly store: Store;
  readonly mails: Outbox<Mail>;
  readonly invoices: Queue<Invoice>;
  readonly placed: Stream<OrderPlaced>;
  /** Runs `work` in a transaction of the store, with the shop's tables on its connection. */
  transaction<T>(work: (tx: JoinedTx, tables: Tables) => Promise<T>): Promise<T>;
}

/** Milliseconds after which the mails of a dead worker come back: the same for every outbox. */
export const MAIL_VISIBILITY = 60_000;

/** Milliseconds after which the invoices of a dead worker come back. */
export const INVOICE_VISIBILITY = 2_000;

/** How often a transaction is repeated that another process was in the way of. */
const RETRIES = 3;

/** Makes the shop on a store; `tablesOn` gives its tables on a connection of the engine's. */
export function createShop<Connection>(
  store: Store<Connection>,
  tablesOn: (connection: Connection) => Tables,
): Shop {
  return {
    store,
    mails: store.outbox<Mail>("mails"),
    invoices: store.queue<Invoice>("invoices", { visibility: INVOICE_VISIBILITY }),
    placed: store.stream<OrderPlaced>("placed"),
    transaction: (work) =>
      store.transaction((tx) => work(tx, tablesOn(tx.connection)), { retries: RETRIES }),
  };
}
