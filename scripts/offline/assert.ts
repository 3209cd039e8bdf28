/**
 * Stands in for `@std/assert`: the assertions that this project's tests use.
 *
 * @module
 */

import { deepStrictEqual } from "node:assert";
import { inspect, stripVTControlCharacters } from "node:util";
import { equal, includes } from "./equal.ts";

// deno-lint-ignore no-explicit-any
type Class<T> = abstract new (...args: any[]) => T;

/** Values that count as false. */
export type Falsy = false | 0 | 0n | "" | null | undefined;

/** An array or what looks like one, but no string. */
export type ArrayLikeArg<T> = ArrayLike<T> & object;

/** Thrown when an assertion does not hold. */
export class AssertionError extends Error {
  override readonly name: string = "AssertionError";
}

/** Asserts that a value is truthy. */
export function assert(expr: unknown, msg: string = ""): asserts expr {
  if (!expr) throw new AssertionError(msg);
}

/** Asserts that a value is falsy. */
export function assertFalse(expr: unknown, msg: string = ""): asserts expr is Falsy {
  if (expr) throw new AssertionError(msg);
}

/** Asserts that two values are equal in depth. */
export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  if (equal(actual, expected)) return;
  throw new AssertionError(say("Values are not equal", msg) + `\n${difference(actual, expected)}`);
}

/** Asserts that two values differ somewhere in depth. */
export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void {
  if (!equal(actual, expected)) return;
  refuse(`Expected actual: ${show(actual)} not to be: ${show(expected)}`, msg);
}

/** Asserts that two values are the same one, by `Object.is`. */
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  msg?: string,
): asserts actual is T {
  if (Object.is(actual, expected)) return;
  const text = equal(actual, expected)
    ? `Values have the same structure but are not reference-equal: ${show(actual)}`
    : `Values are not strictly equal: ${show(actual)} and ${show(expected)}`;
  refuse(text, msg);
}

/** Asserts that a value is neither `null` nor `undefined`. */
export function assertExists<T>(actual: T, msg?: string): asserts actual is NonNullable<T> {
  if (actual !== undefined && actual !== null) return;
  refuse(`Expected actual: "${actual}" to not be null or undefined`, msg);
}

/** Asserts that a string matches a pattern. */
export function assertMatch(actual: string, expected: RegExp, msg?: string): void {
  if (expected.test(actual)) return;
  refuse(`Expected actual: "${actual}" to match: "${expected}"`, msg);
}

/** Asserts that a string contains another. */
export function assertStringIncludes(actual: string, expected: string, msg?: string): void {
  if (actual.includes(expected)) return;
  refuse(`Expected actual: "${actual}" to contain: "${expected}"`, msg);
}

/** Asserts that an array contains every expected item, in any order. */
export function assertArrayIncludes<T>(
  actual: ArrayLikeArg<T>,
  expected: ArrayLikeArg<T>,
  msg?: string,
): void {
  const items = Array.from(actual);
  const missing = Array.from(expected).filter((item) => !items.some((other) => equal(item, other)));
  if (missing.length === 0) return;
  const text = `Expected actual: "${show(actual)}" to include: "${show(expected)}"`;
  throw new AssertionError(`${say(text, msg)}\nmissing: ${show(missing)}`);
}

/** Asserts that an object has the expected properties, in depth; it may have more. */
export function assertObjectMatch(
  // deno-lint-ignore no-explicit-any
  actual: Record<PropertyKey, any>,
  expected: Record<PropertyKey, unknown>,
  msg?: string,
): void {
  for (const value of [actual, expected]) {
    if (typeof value === "object" && value !== null) continue;
    throw new TypeError(`Cannot use assertObjectMatch: expected objects, received ${value}`);
  }
  if (includes(actual, expected)) return;
  throw new AssertionError(
    say("Object does not match", msg) + `\n${difference(actual, expected)}`,
  );
}

/** Asserts that a value is an instance of a class. */
export function assertInstanceOf<
  // deno-lint-ignore no-explicit-any
  T extends abstract new (...args: any[]) => any,
>(actual: unknown, expectedType: T, msg: string = ""): asserts actual is InstanceType<T> {
  if (actual instanceof expectedType) return;
  const [wanted, found] = [expectedType.name, kindOf(actual)];
  const but = found === `"${wanted}"` ? "" : ` but was ${found}`;
  refuse(`Expected object to be an instance of "${wanted}"${but}`, msg);
}

/** Asserts that `actual > expected`. */
export function assertGreater<T>(actual: T, expected: T, msg?: string): void {
  if (actual > expected) return;
  refuse(`Expect ${show(actual)} > ${show(expected)}`, msg);
}

/** Asserts that `actual >= expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (actual >= expected) return;
  refuse(`Expect ${show(actual)} >= ${show(expected)}`, msg);
}

/** Asserts that `actual < expected`. */
export function assertLess<T>(actual: T, expected: T, msg?: string): void {
  if (actual < expected) return;
  refuse(`Expect ${show(actual)} < ${show(expected)}`, msg);
}

/** Asserts that `actual <= expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (actual <= expected) return;
  refuse(`Expect ${show(actual)} <= ${show(expected)}`, msg);
}

/** Asserts that a function throws, and gives what it threw. */
export function assertThrows(fn: () => unknown, msg?: string): unknown;
/** Asserts that a function throws an error of a class, with a text in its message. */
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  ErrorClass: Class<E>,
  msgIncludes?: string,
  msg?: string,
): E;
export function assertThrows(
  fn: () => unknown,
  errorClassOrMsg?: Class<Error> | string,
  msgIncludesOrMsg?: string,
  msg?: string,
): unknown {
  const expected = readExpected(errorClassOrMsg, msgIncludesOrMsg, msg);
  let thrown: unknown;
  try {
    fn();
  } catch (error) {
    thrown = error;
    checkError(thrown, expected, "thrown");
    return thrown;
  }
  return refuse("Expected function to throw", expected.msg);
}

/** Asserts that a function's promise rejects, and gives the reason. */
export function assertRejects(fn: () => PromiseLike<unknown>, msg?: string): Promise<unknown>;
/** Asserts that a function's promise rejects with an error of a class, with a text in its message. */
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass: Class<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
export async function assertRejects(
  fn: () => PromiseLike<unknown>,
  errorClassOrMsg?: Class<Error> | string,
  msgIncludesOrMsg?: string,
  msg?: string,
): Promise<unknown> {
  const expected = readExpected(errorClassOrMsg, msgIncludesOrMsg, msg);
  let promise: PromiseLike<unknown>;
  try {
    promise = fn();
    if (typeof promise?.then !== "function") throw new TypeError("No promise was returned");
  } catch {
    return refuse("Function throws when expected to reject", expected.msg);
  }
  try {
    await promise;
  } catch (reason) {
    checkError(reason, expected, "rejected");
    return reason;
  }
  return refuse("Expected function to reject", expected.msg);
}

/** Fails. */
export function fail(msg?: string): never {
  return refuse("Failed assertion", msg);
}

/** Fails, at a place that no run should reach. */
export function unreachable(msg?: string): never {
  return refuse("Unreachable", msg);
}

/** What an expected error looks like. */
interface ExpectedError {
  readonly ErrorClass: Class<Error> | undefined;
  readonly msgIncludes: string | undefined;
  readonly msg: string | undefined;
}

function readExpected(
  errorClassOrMsg: Class<Error> | string | undefined,
  msgIncludesOrMsg: string | undefined,
  msg: string | undefined,
): ExpectedError {
  if (typeof errorClassOrMsg === "function") {
    return { ErrorClass: errorClassOrMsg, msgIncludes: msgIncludesOrMsg, msg };
  }
  return {
    ErrorClass: undefined,
    msgIncludes: undefined,
    msg: errorClassOrMsg ?? msgIncludesOrMsg,
  };
}

function checkError(error: unknown, expected: ExpectedError, how: "thrown" | "rejected"): void {
  const { ErrorClass, msgIncludes, msg } = expected;
  if (ErrorClass === undefined) return;
  if (!(error instanceof Error)) refuse(`A non-Error object was ${how}`, msg);
  if (!(error instanceof ErrorClass)) {
    refuse(
      `Expected error to be instance of "${ErrorClass.name}", but was ${kindOf(error)}`,
      msg,
    );
  }
  if (msgIncludes === undefined) return;
  const [text, part] = [error.message, msgIncludes].map(stripVTControlCharacters);
  if (text?.includes(part ?? "") !== true) {
    refuse(`Expected error message to include ${show(part)}, but got ${show(text)}`, msg);
  }
}

/** Throws with what was found, and what the caller says about it. */
function refuse(text: string, msg: string | undefined): never {
  throw new AssertionError(say(text, msg));
}

function say(text: string, msg: string | undefined): string {
  return msg ? `${text}: ${msg}` : `${text}.`;
}

function show(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value)
    : inspect(value, { depth: 8, sorted: true, compact: false });
}

function kindOf(value: unknown): string {
  if (value === null || typeof value === "function") return "not an instanced object";
  return `"${typeof value === "object" ? value.constructor?.name ?? "Object" : typeof value}"`;
}

/** Borrows the picture of a difference from Node's own assertion. */
function difference(actual: unknown, expected: unknown): string {
  try {
    deepStrictEqual(actual, expected);
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  return `actual: ${show(actual)}\nexpected: ${show(expected)}`;
}
