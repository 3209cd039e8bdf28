/**
 * The process that takes orders: `producer.ts <place> <orders>`.
 *
 * @module
 */

import { delay, now, say } from "./messages.ts";
import { openShop } from "./open.ts";
import { dayOf, type Order, readOrders } from "./order.ts";
import { readPlace, type Shop } from "./shop.ts";

/** Milliseconds between two orders, outside the rush. */
const PAUSE = 8;

/** Milliseconds that orders keep coming at least, however few they are. */
const LEAST_TIME = 3_000;

/** The part of the orders that come without a pause. */
const RUSH = { from: 0.45, to: 0.6 };

/** Of so many orders one is refused, and one works at the second try. */
const ORDERS_PER_FAILURE = 40;

/** The bank said no. */
class PaymentError extends Error {
  override readonly name = "PaymentError";
  /** Whether it says no again. */
  readonly isFinal: boolean;

  constructor(order: string, isFinal: boolean) {
    super(
      `Cannot charge order ${order}: ${isFinal ? "the card was declined" : "the bank is busy"}`,
    );
    this.isFinal = isFinal;
  }
}

/** Takes the orders, one after the other: at an even pace, made up for when it was lost. */
async function takeOrders(shop: Shop, orders: readonly Order[]): Promise<void> {
  const pause = Math.max(PAUSE, LEAST_TIME / orders.length);
  const rushFrom = Math.floor(RUSH.from * orders.length);
  const rushTo = Math.floor(RUSH.to * orders.length);
  let dueAt = performance.now();
  for (const [index, order] of orders.entries()) {
    if (index === rushFrom) say({ type: "rush" });
    const isRush = index >= rushFrom && index < rushTo;
    dueAt = isRush ? performance.now() : dueAt + pause;
    await delay(Math.max(dueAt - performance.now(), 0));
    await takeOrder(shop, order, index);
  }
}

/** Takes an order; at the second try when its payment failed, unless it is refused. */
async function takeOrder(shop: Shop, order: Order, index: number): Promise<void> {
  for (let attempt = 1;; attempt++) {
    try {
      await placeOrder(shop, order, () => charge(order, index, attempt));
      return say({ type: "placed", order: order.id, at: now() });
    } catch (error) {
      if (!(error instanceof PaymentError)) throw error;
      say({ type: "rolled-back", order: order.id, isRefused: error.isFinal });
      if (error.isFinal) return;
    }
  }
}

/** Writes the order and all that follows from it, in one transaction. */
async function placeOrder(shop: Shop, order: Order, charge: () => void): Promise<void> {
  const { id, customer, shipping, totalCents } = order;
  await shop.transaction(async (tx, tables) => {
    await tables.insertOrder(order);
    await tx.outboxEnqueueTx(shop.mails, {}, {
      order: id,
      to: `${customer.name} <${customer.email}>`,
      subject: `Your order ${id}`,
    });
    await tx.enqueueTx(shop.invoices, {}, { order: id, to: customer.name, totalCents });
    await tx.publishTx(shop.placed, {
      order: id,
      country: shipping.country,
      day: dayOf(order),
      totalCents,
    });
    // Last on purpose: when it throws, all of the above is written and must be gone.
    charge();
  });
}

/** Charges the customer, or throws a {@linkcode PaymentError}: always for the same orders. */
function charge(order: Order, index: number, attempt: number): void {
  const turn = (index + 1) % ORDERS_PER_FAILURE;
  if (turn === ORDERS_PER_FAILURE / 2) throw new PaymentError(order.id, true);
  if (turn === 0 && attempt === 1) throw new PaymentError(order.id, false);
}

/** Runs the producer. */
async function main(): Promise<void> {
  const { place, argument } = readPlace(Deno.args);
  const shop = await openShop(place);
  await takeOrders(shop, await readOrders(Number(argument)));
  await shop.store.close();
}

if (import.meta.main) await main();
