/**
 * The orders the demo takes.
 *
 * @module
 */

/** One line of an order. */
export interface OrderItem {
  readonly sku: string;
  readonly title: string;
  readonly quantity: number;
  readonly priceCents: number;
}

/** An order of a customer. */
export interface Order {
  readonly id: string;
  /** ISO 8601, UTC. */
  readonly placedAt: string;
  readonly customer: { readonly name: string; readonly email: string };
  readonly items: readonly OrderItem[];
  readonly totalCents: number;
  readonly currency: "EUR";
  readonly shipping: {
    readonly street: string;
    readonly postalCode: string;
    readonly city: string;
    /** ISO 3166, two letters. */
    readonly country: string;
  };
}

/** The file with the orders, made by `generate_orders.ts`. */
export const ordersFile: URL = new URL("orders.jsonl", import.meta.url);

/** How many orders the file holds. */
export const ORDERS = 1_000;

/** Reads the first `count` orders of the file. */
export async function readOrders(count: number): Promise<Order[]> {
  const lines = (await Deno.readTextFile(ordersFile)).split("\n").slice(0, count);
  return lines.map((line): Order => JSON.parse(line));
}

/** The day of an order, by which revenue is counted: `2026-03-02`. */
export function dayOf(order: Order): string {
  return order.placedAt.slice(0, 10);
}
