import { CodecError } from "./errors.ts";

/**
 * What a payload may be: JSON as a type. `undefined`, `NaN`, `Infinity`, `bigint`, functions, dates,
 * maps and other class instances are not in it; `-0` is stored as `0`.
 *
 * @example
 * ```ts
 * import type { Json } from "@alkstore/alkstore";
 *
 * const order: Json = { id: "o-1", lines: [{ sku: "a", count: 2 }], note: null };
 * console.log(order);
 * ```
 */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

const MAX_DEPTH = 1_000;

/**
 * Writes a payload as the JSON text that is stored, verbatim, on every engine.
 * Anything that would not come back as it was sent is a `CodecError` naming its path.
 */
export function encodeJson(value: unknown, operation: string): string {
  check(value, operation, []);
  return JSON.stringify(value);
}

/** Reads a stored payload. */
export function decodeJson(text: string, operation: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CodecError(operation, "$", "the stored payload is not JSON", { cause });
  }
}

/** One level of the walk: the container and the key or index being looked at. */
interface Level {
  readonly container: object;
  key: string | number;
}

function check(value: unknown, operation: string, levels: Level[]): void {
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) {
        fail("a string with a lone surrogate is not JSON", operation, levels);
      }
      return;
    case "number":
      if (!Number.isFinite(value)) fail(`${value} is not JSON`, operation, levels);
      return;
    case "boolean":
      return;
    case "object":
      if (value !== null) checkContainer(value, operation, levels);
      return;
    default:
      fail(
        `${typeof value === "undefined" ? "undefined" : `a ${typeof value}`} is not JSON`,
        operation,
        levels,
      );
  }
}

function checkContainer(container: object, operation: string, levels: Level[]): void {
  if (levels.length >= MAX_DEPTH) {
    const isCycle = levels.some((level) => level.container === container);
    fail(isCycle ? "a cycle is not JSON" : `nesting past ${MAX_DEPTH} levels`, operation, levels);
  }
  if (Array.isArray(container)) {
    refuseToJson(container, operation, levels);
    const level: Level = { container, key: 0 };
    levels.push(level);
    for (let index = 0; index < container.length; index++) {
      level.key = index;
      check(container[index], operation, levels);
    }
    if (Object.keys(container).length > container.length) {
      level.key = Object.keys(container).at(-1) ?? "";
      fail("a property of an array is not JSON", operation, levels);
    }
    levels.pop();
    return;
  }
  const prototype = Object.getPrototypeOf(container);
  if (prototype !== null && prototype !== Object.prototype && !isForeignObject(prototype)) {
    const name = container.constructor?.name || "class";
    fail(`an instance of ${name} is not JSON`, operation, levels);
  }
  refuseToJson(container, operation, levels);
  const level: Level = { container, key: "" };
  levels.push(level);
  for (const key of Object.keys(container)) {
    level.key = key;
    if (!key.isWellFormed()) fail("a key with a lone surrogate is not JSON", operation, levels);
    check((container as Record<string, unknown>)[key], operation, levels);
  }
  if (Object.getOwnPropertySymbols(container).length > 0) {
    level.key = "[symbol]";
    fail("a symbol key is not JSON", operation, levels);
  }
  levels.pop();
}

/** JSON.stringify() would call it, and write something else than was checked. */
function refuseToJson(container: object, operation: string, levels: readonly Level[]): void {
  if (typeof Reflect.get(container, "toJSON") === "function") {
    fail("an object with toJSON() is not JSON", operation, levels);
  }
}

/** Plain objects of another realm (a worker, a vm context) have another `Object.prototype`. */
function isForeignObject(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, "isPrototypeOf");
}

function fail(fact: string, operation: string, levels: readonly Level[]): never {
  throw new CodecError(operation, pathOf(levels), fact);
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

function pathOf(levels: readonly Level[]): string {
  let path = "$";
  // A path of a thousand levels helps nobody: the first and the last ones say where it is.
  const shown = levels.length > 20 ? [...levels.slice(0, 10), ...levels.slice(-10)] : levels;
  for (const [index, { key }] of shown.entries()) {
    if (levels.length > 20 && index === 10) path += "…";
    if (typeof key === "number") path += `[${key}]`;
    else path += IDENTIFIER.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  }
  return path;
}
