/**
 * Counts tests, from the summaries that the runners print.
 *
 * @module
 */

import { stripVTControlCharacters } from "node:util";

/** How the tests of one or more runs ended. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Reads the last summary line of `deno test`, such as `ok | 12 passed (3 steps) | 0 failed`. */
export function readDenoSummary(output: string): Tally | undefined {
  const line = stripVTControlCharacters(output).split("\n").findLast((text) =>
    /^(ok|FAILED) \| \d+ passed/.test(text)
  );
  if (line === undefined) return undefined;
  const count = (what: string): number => number(line, new RegExp(`\\| (\\d+) ${what}`));
  return { passed: count("passed"), failed: count("failed"), skipped: count("ignored") };
}

/** Reads the closing comments of a TAP report of Node's test runner, such as `# pass 12`. */
export function readTapSummary(report: string): Tally | undefined {
  if (!/^# pass \d+$/m.test(report)) return undefined;
  const count = (what: string): number => number(report, new RegExp(`^# ${what} (\\d+)$`, "m"));
  return {
    passed: count("pass"),
    failed: count("fail") + count("cancelled"),
    skipped: count("skipped") + count("todo"),
  };
}

/** Makes the tally agree with the exit code: a run that failed has a failure, whatever it counted. */
export function judge(tally: Tally | undefined, code: number): Tally {
  if (tally === undefined) return { passed: 0, failed: 1, skipped: 0 };
  return code !== 0 && tally.failed === 0 ? { ...tally, failed: 1 } : tally;
}

/** Adds the tallies of several runs. */
export function sum(tallies: readonly Tally[]): Tally {
  const total = (key: keyof Tally): number => tallies.reduce((sum, tally) => sum + tally[key], 0);
  return { passed: total("passed"), failed: total("failed"), skipped: total("skipped") };
}

/** Writes the tally as the line that closes a run. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed` + (skipped > 0 ? `, ${skipped} skipped` : "");
}

function number(text: string, pattern: RegExp): number {
  return Number(pattern.exec(text)?.[1] ?? 0);
}
