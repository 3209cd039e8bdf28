/**
 * Whether all promises were kept, from the facts alone.
 *
 * @module
 */

import { countLeft, type Facts } from "./facts.ts";
import { dayOf } from "./order.ts";
import type { Sent } from "./sent.ts";
import { INVOICE_VISIBILITY, MAIL_VISIBILITY } from "./shop.ts";

/** One promise, as it was to be and as it was found. */
export interface Check {
  readonly name: string;
  readonly expected: string;
  readonly found: string;
  readonly holds: boolean;
}

/** Milliseconds that a claim lasts. */
const LEASES: Readonly<Record<Sent["kind"], number>> = {
  mail: MAIL_VISIBILITY,
  invoice: INVOICE_VISIBILITY,
};

/** Milliseconds half the wakes may take: many times what they do, and far below any polling. */
const WAKE_LIMIT = 100;

/** Checks everything. */
export function checkFacts(facts: Facts): Check[] {
  return [
    ...checkOrders(facts),
    ...checkSent(facts, "mail", "mails"),
    ...checkSent(facts, "invoice", "invoices"),
    ...checkRecovery(facts),
    ...checkProjection(facts),
    ...checkWakes(facts),
  ];
}

function checkOrders({ journal, orders, rows, events, sent }: Facts): Check[] {
  const { placed, refused } = journal;
  const ghosts = [
    ...rows,
    ...events.map(({ order }) => order),
    ...sent.map(({ order }) => order),
  ].filter((order) => !placed.has(order));
  return [
    equal("orders taken or refused", orders.length, placed.size + refused.size),
    // Compared as texts, one by one and in their order: a count would forgive a mix-up.
    same("orders in the table", [...placed.keys()].toSorted(), rows),
    same("events in the stream, in order", placed.keys(), events.map(({ order }) => order)),
    equal("ghosts of rolled-back transactions", 0, ghosts.length),
  ];
}

function checkSent(facts: Facts, kind: Sent["kind"], plural: "mails" | "invoices"): Check[] {
  const { placed } = facts.journal;
  const sent = facts.sent.filter((one) => one.kind === kind);
  const reached = new Set(sent.filter(isRight(facts, kind)).map(({ order }) => order));
  const lost = [...placed.keys()].filter((order) => !reached.has(order));
  return [
    equal(`${plural}: orders delivered at least once`, placed.size, placed.size - lost.length),
    equal(`${plural}: lost`, 0, lost.length),
    equal(
      `${plural}: left in the queue, or dead`,
      0,
      countLeft(facts[plural]) + facts[plural].dead,
    ),
    equal(`${plural}: claims of one job that overlap`, 0, countOverlaps(sent, LEASES[kind])),
  ];
}

/** Counts the attempts that began long before the lease of the one before could have ended. */
function countOverlaps(sent: readonly Sent[], lease: number): number {
  const startedAt = new Map<number, number>();
  let overlaps = 0;
  for (const one of sent) {
    if (one.startedAt - (startedAt.get(one.job) ?? -Infinity) < lease / 2) overlaps++;
    startedAt.set(one.job, one.startedAt);
  }
  return overlaps;
}

/** Tells whether what was sent went to the customer of the order. */
function isRight({ orders }: Facts, kind: Sent["kind"]): (sent: Sent) => boolean {
  const customers = new Map(orders.map(({ id, customer: { name, email } }) => [
    id,
    kind === "mail" ? `${name} <${email}>` : name,
  ]));
  return ({ order, to }) => customers.get(order) === to;
}

function checkRecovery(facts: Facts): Check[] {
  const { signal, jobs } = facts.kill;
  return [
    equal("killed with", "SIGKILL", signal ?? "nothing"),
    {
      name: "claims held at the kill, recovered",
      expected: `${jobs.length} of ${jobs.length}`,
      found: `${findRecovered(facts).length} of ${jobs.length}`,
      holds: jobs.length > 0 && findRecovered(facts).length === jobs.length,
    },
  ];
}

/** What others sent for the jobs of the killed worker, once for each. */
export function findRecovered({ sent, kill }: Facts): Sent[] {
  const recovered = new Map<number, Sent>();
  for (const one of sent) {
    const isTheirs = one.kind === "invoice" && kill.jobs.includes(one.job);
    if (!isTheirs || one.worker === kill.worker || recovered.has(one.job)) continue;
    recovered.set(one.job, one);
  }
  return [...recovered.values()];
}

function checkProjection({ journal, orders, revenue, lag }: Facts): Check[] {
  const exact = new Map<string, { orders: number; cents: number }>();
  for (const order of orders) {
    if (!journal.placed.has(order.id)) continue;
    const key = `${order.shipping.country} ${dayOf(order)}`;
    const sums = exact.get(key) ?? { orders: 0, cents: 0 };
    sums.orders++;
    sums.cents += order.totalCents;
    exact.set(key, sums);
  }
  const wrong = revenue.filter(({ country, day, orders, cents }) => {
    const sums = exact.get(`${country} ${day}`);
    return sums?.orders !== orders || sums.cents !== cents;
  });
  const missing = exact.size - revenue.length;
  return [
    equal("projection: events before it", 0, lag),
    equal("projection: total", euros([...exact.values()]), euros(revenue)),
    equal("projection: orders", journal.placed.size, sum(revenue.map(({ orders }) => orders))),
    equal("projection: countries and days, exact", exact.size, exact.size - wrong.length - missing),
  ];
}

function checkWakes(facts: Facts): Check[] {
  const lost = facts.pings.filter((latency) => latency === Infinity);
  const isPolling = facts.status.wake === "poll";
  return [
    ...(isPolling ? [] : [equal("wakes: notifies that woke nobody in time", 0, lost.length)]),
    checkLatency(facts, "wakes: from a notify to another process, p50", facts.pings),
    checkLatency(facts, "wakes: from a commit to its mail begun, p50", findLatencies(facts)),
  ];
}

function checkLatency({ status }: Facts, name: string, latencies: readonly number[]): Check {
  const p50 = percentile(latencies, 50);
  const isPolling = status.wake === "poll";
  return {
    name,
    expected: isPolling ? "any, without file events" : `below ${WAKE_LIMIT} ms`,
    found: milliseconds(p50),
    holds: p50 !== undefined && p50 < (isPolling ? Infinity : WAKE_LIMIT),
  };
}

/**
 * The milliseconds from the return of a commit in the producer to the call of the handler of its
 * mail, where that found its worker without a mail: others tell how busy it was.
 */
export function findLatencies({ journal, sent }: Facts): number[] {
  const latencies: number[] = [];
  for (const { kind, order, attempt, startedAt, idleSince } of sent) {
    const committedAt = journal.placed.get(order);
    if (kind !== "mail" || attempt !== 1 || committedAt === undefined) continue;
    if (idleSince === undefined || idleSince > committedAt) continue;
    // Another process may see a commit before its caller gets the word.
    latencies.push(Math.max(startedAt - committedAt, 0));
  }
  return latencies;
}

/** The value that `percent` of the values do not exceed; nothing when there are none. */
export function percentile(values: readonly number[], percent: number): number | undefined {
  return values.toSorted((a, b) =>
    a - b
  )[Math.max(Math.ceil(values.length * percent / 100) - 1, 0)];
}

/** Writes a time. */
export function milliseconds(value: number | undefined): string {
  if (value === undefined) return "none measured";
  if (value === Infinity) return "never";
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

function euros(rows: readonly { readonly cents: number }[]): string {
  const cents = String(sum(rows.map((row) => row.cents))).padStart(3, "0");
  return `€${cents.slice(0, -2)}.${cents.slice(-2)}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function equal(name: string, expected: string | number, found: string | number): Check {
  return { name, expected: `${expected}`, found: `${found}`, holds: expected === found };
}

/** Expects the same texts in the same order. */
function same(name: string, expected: Iterable<string>, found: readonly string[]): Check {
  const texts = [...expected];
  const wrong = texts.findIndex((text, index) => text !== found[index]);
  const check = equal(name, texts.length, found.length);
  if (wrong < 0) return check;
  return { ...check, found: `${found.length}, ${found[wrong]} for ${texts[wrong]}`, holds: false };
}
