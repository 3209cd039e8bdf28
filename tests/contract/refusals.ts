/** What it takes to show that a call is refused, says why, and writes nothing. */

import { assert, assertEquals, assertInstanceOf, assertStringIncludes } from "@std/assert";
import type { TestDatabase } from "./harness.ts";

/** A class of errors. */
export type ErrorClass = new (...args: never[]) => Error;

/** Hands a value to a call as JavaScript does, which asks nobody for its type. */
export function fromJavaScript(value: unknown): never {
  return value as never;
}

/** How a call is expected to refuse. */
export interface Expected {
  readonly error: ErrorClass;
  /** What the message starts with: the operation. */
  readonly says: string;
  /** What else the message names: the argument, the value. */
  readonly names?: readonly string[];
  /** The call throws; otherwise it gives a promise that rejects. */
  readonly throws?: boolean;
}

/** Asserts that a call refuses as expected, and gives its error; `what` says which case it was. */
export async function assertRefuses(
  call: () => unknown,
  expected: Expected,
  what: string,
): Promise<Error> {
  const { error, isThrown } = await refusalOf(call, what);
  assertInstanceOf(error, expected.error, `${what}: ${String(error)}`);
  assertEquals(
    isThrown ? "thrown" : "rejected",
    expected.throws === true ? "thrown" : "rejected",
    what,
  );
  assert(error.message.startsWith(`${expected.says}`), `${what}: "${error.message}"`);
  for (const part of expected.names ?? []) assertStringIncludes(error.message, part, what);
  return error;
}

async function refusalOf(
  call: () => unknown,
  what: string,
): Promise<{ error: Error; isThrown: boolean }> {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    assertInstanceOf(error, Error, what);
    return { error, isThrown: true };
  }
  try {
    await result;
  } catch (error) {
    assertInstanceOf(error, Error, what);
    return { error, isThrown: false };
  }
  throw new Error(`${what}: nothing was refused`);
}

/** Runs `work` and asserts that alkstore's tables hold as many rows after it as before. */
export async function assertWritesNothing(
  database: TestDatabase,
  work: () => Promise<void>,
): Promise<void> {
  const before = await database.countRows();
  await work();
  assertEquals(await database.countRows(), before, "rows were written");
}
