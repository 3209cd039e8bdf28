/**
 * What the demo prints in the end.
 *
 * @module
 */

import { type Check, findLatencies, findRecovered, milliseconds, percentile } from "./checks.ts";
import type { Facts } from "./facts.ts";
import type { Sent } from "./sent.ts";
import { INVOICE_VISIBILITY, MAIL_VISIBILITY } from "./shop.ts";

/** A part of the story: what it is about, and the lines that tell it. */
type Part = readonly [about: string, ...lines: string[]];

/** The width of the column that says what a part is about. */
const MARGIN = 12;

/** Writes the story and the table of checks. */
export function formatReport(facts: Facts, checks: readonly Check[]): string {
  return ["", ...tell(facts).flatMap(formatPart), "", ...formatTable(checks), ""].join("\n");
}

/** Tells what was done, so that the numbers of the table can be judged. */
function tell(facts: Facts): Part[] {
  const { status: { engine, driver, wake, details }, journal, syncTime, pings, sent } = facts;
  const { placed, refused, rollbacks, lostRaces, trouble } = journal;
  const durability = details["durability"];
  return [
    [
      "Store",
      `${engine}, driver ${driver}, ${durability ? `durability ${durability}, ` : ""}` +
      `wakes by ${wake}; a sync of this disk takes ${milliseconds(syncTime)}`,
    ],
    [
      "Orders",
      `${placed.size} committed with their mail, invoice and event, ${refused.size} refused`,
    ],
    [
      "Rollbacks",
      `${rollbacks}, each after everything was written; ${rollbacks - refused.size} of them ` +
      `worked at the second try`,
    ],
    tellKill(facts),
    tellRecovery(facts),
    [
      "Repeats",
      `${countRepeats(sent, "mail")} mails and ${
        countRepeats(sent, "invoice")
      } invoices were sent ` +
      `more than once: at least once is the promise`,
    ],
    ["Projection", `two workers, one consumer; ${lostRaces} times the other one was faster`],
    [
      "Wakes",
      `a notify woke an idle process after ${spread(pings)};`,
      `amid the trade, a commit had its mail claimed and begun after ${
        spread(findLatencies(facts))
      }`,
    ],
    ...[...trouble].map(([line, times]): Part => ["Reported", `${line} (${times} times)`]),
  ];
}

function tellKill({ kill }: Facts): Part {
  const { worker, signal, placed, jobs, wasProjecting } = kill;
  return [
    "Kill",
    `${worker} by ${signal} after ${placed} orders, while it held ${jobs.length} invoices, every other`,
    `one sent but not acked, and stood ${wasProjecting ? "in" : "outside"} a transaction of the ` +
    `projection. It was told to`,
    `finish its mails before: their claims last ${
      MAIL_VISIBILITY / 1_000
    } s in every outbox, longer ` +
    `than this`,
    `demo, those of the invoices ${INVOICE_VISIBILITY / 1_000} s`,
  ];
}

function tellRecovery(facts: Facts): Part {
  const delays = findRecovered(facts).map(({ startedAt }) => startedAt - facts.kill.at);
  const last = Math.max(...delays) / 1_000;
  if (delays.length === 0) return ["Recovery", "none"];
  return ["Recovery", `${delays.length} jobs, the last one ${last.toFixed(1)} s after the kill`];
}

/** Writes how latencies are spread, and of how many that is said. */
function spread(latencies: readonly number[]): string {
  const [p50, p99] = [50, 99].map((percent) => milliseconds(percentile(latencies, percent)));
  return `p50 ${p50}, p99 ${p99} (${latencies.length})`;
}

function countRepeats(sent: readonly Sent[], kind: Sent["kind"]): number {
  const ofKind = sent.filter((one) => one.kind === kind);
  return ofKind.length - new Set(ofKind.map(({ job }) => job)).size;
}

function formatPart([about, ...lines]: Part): string[] {
  return lines.map((line, index) => (index === 0 ? about : "").padEnd(MARGIN) + line);
}

function formatTable(checks: readonly Check[]): string[] {
  const rows = [
    ["CHECK", "EXPECTED", "FOUND", ""],
    ...checks.map(({ name, expected, found, holds }) => {
      return [name, expected, found, holds ? "ok" : "FAILED"];
    }),
  ];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0))
  );
  return rows.map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd()
  );
}
