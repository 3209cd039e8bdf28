/**
 * The projection: revenue by country and day, exact although every worker builds it.
 *
 * @module
 */

import type { EventReceiver, StreamEvent } from "../../mod.ts";
import type { OrderPlaced, Shop } from "./shop.ts";

/** The consumer all workers are: one offset for all of them. */
export const CONSUMER = "revenue";

/** How many events share a transaction at most. */
const BATCH = 20;

/** What the worker is told of. */
export interface ProjectionWatch {
  /** The other worker had already projected the events. */
  lostRace(): void;
  /** Called inside the transaction, when all is written. */
  beforeCommit(): Promise<void>;
}

/** Projects events until the receiver is closed. */
export async function project(
  shop: Shop,
  receiver: EventReceiver<OrderPlaced>,
  watch: ProjectionWatch,
): Promise<void> {
  let from = receiver.offset();
  let events: StreamEvent<OrderPlaced>[];
  while ((events = await nextBatch(receiver)).length > 0) {
    for (let ahead = after(events, from); ahead.length > 0; ahead = after(ahead, from)) {
      const offset = ahead.at(-1)?.offset ?? from;
      if (await projectBatch(shop, ahead, offset, from, watch)) {
        from = offset;
      } else {
        watch.lostRace();
        from = await shop.placed.getOffset(CONSUMER);
      }
    }
  }
}

/** Adds the events and moves the offset in one transaction, unless it is no longer at `from`. */
async function projectBatch(
  shop: Shop,
  events: readonly StreamEvent<OrderPlaced>[],
  offset: number,
  from: number,
  watch: ProjectionWatch,
): Promise<boolean> {
  return await shop.transaction(async (tx, tables) => {
    const isOurs = await tx.saveOffsetTx(shop.placed, CONSUMER, offset, { from, ifLost: "ignore" });
    if (!isOurs) return false;
    for (const { payload } of events) await tables.addRevenue(payload);
    await watch.beforeCommit();
    return true;
  });
}

/** Waits for the next event and takes what is there behind it; nothing once closed. */
async function nextBatch(
  receiver: EventReceiver<OrderPlaced>,
): Promise<StreamEvent<OrderPlaced>[]> {
  const events: StreamEvent<OrderPlaced>[] = [];
  let event = await receiver.recv();
  while (event !== undefined) {
    events.push(event);
    event = events.length < BATCH ? await receiver.tryRecv() : undefined;
  }
  return events;
}

function after(
  events: readonly StreamEvent<OrderPlaced>[],
  offset: number,
): StreamEvent<OrderPlaced>[] {
  return events.filter((event) => event.offset > offset);
}
