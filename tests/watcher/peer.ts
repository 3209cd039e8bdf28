/**
 * Another process with the database open. Reads lines of JSON, each a list of steps, and answers
 * each with an empty line or with what went wrong.
 */
import { DatabaseSync } from "node:sqlite";
import { createInterface } from "node:readline";

/** A statement, or milliseconds to wait. */
export type Step = string | number;

function sleep(duration: number): void {
  // Not a timer: what it holds, a busy process holds.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, duration);
}

function take(database: DatabaseSync, step: Step): void {
  if (typeof step === "number") sleep(step);
  else database.exec(step);
}

function answer(database: DatabaseSync, line: string): string {
  try {
    const steps: Step[] = JSON.parse(line);
    for (const step of steps) take(database, step);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function serve(path: string): Promise<void> {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA busy_timeout = 5000");
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(answer(database, line));
  }
  database.close();
}

if (import.meta.main) await serve(Deno.args[0] ?? "");
