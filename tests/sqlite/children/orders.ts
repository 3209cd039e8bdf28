/** The child's side of `Child`: takes orders as lines of JSON and answers each with one. */

import { createInterface } from "node:readline";
import process from "node:process";

/** What an order says besides its name. */
// deno-lint-ignore no-explicit-any
export type Details = any;

/** Carries out an order; what it gives is the answer. */
export type Deed = (details: Details) => unknown;

/** Says something to the test. */
export function say(answer: unknown): void {
  process.stdout.write(`${JSON.stringify({ answer: answer ?? null })}\n`);
}

/** Says that it is ready, then carries out orders one after the other until the test is gone. */
export async function obey(deeds: Readonly<Record<string, Deed>>): Promise<void> {
  say("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const { order, ...details } = JSON.parse(line);
    try {
      say(await deeds[order]!(details));
    } catch (error) {
      process.stdout.write(`${JSON.stringify({ error: describe(error) })}\n`);
    }
  }
  process.exit();
}

/** An error as text that survives the way to the test. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.name}: ${error.message}`;
}
