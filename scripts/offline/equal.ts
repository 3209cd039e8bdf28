/**
 * Compares values in depth, as `@std/assert` understands equality.
 *
 * Node's own `deepStrictEqual` is stricter in two ways that tests meet: there `0` and `-0` differ,
 * and so do `{ a: 1 }` and the same object without a prototype, which is what a row of
 * `node:sqlite` is.
 *
 * @module
 */

/** Pairs under comparison, so that a cycle ends. */
type Pairs = Map<object, object>;

/** Tells whether two values are equal in depth. */
export function equal(a: unknown, b: unknown): boolean {
  return compare(a, b, new Map());
}

/** Tells whether `actual` has everything that `expected` has, in depth; the classes may differ. */
export function includes(actual: unknown, expected: unknown): boolean {
  return covers(actual, expected, new Map());
}

function compare(a: unknown, b: unknown, pairs: Pairs): boolean {
  if (sameValue(a, b)) return true;
  if (!isObject(a) || !isObject(b) || !sameKind(a, b)) return false;
  if (pairs.get(a) === b) return true;
  pairs.set(a, b);

  if (a instanceof WeakMap || a instanceof WeakSet) {
    throw new TypeError("Cannot compare the contents of a WeakMap or WeakSet");
  }
  if (a instanceof WeakRef && b instanceof WeakRef) return compare(a.deref(), b.deref(), pairs);
  const [textA, textB] = [asText(a), asText(b)];
  if (textA !== undefined || textB !== undefined) return textA === textB;
  if (a instanceof ArrayBuffer && b instanceof ArrayBuffer) {
    return compareItems(new Uint8Array(a), new Uint8Array(b));
  }
  if (isTypedArray(a) && isTypedArray(b)) return compareItems(a, b);
  if (a instanceof Set && b instanceof Set) {
    return a.size === b.size && [...a].every((item) => hasItem(b, item, pairs));
  }
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every((entry) => hasEntry(b, entry, pairs));
  }
  if (a instanceof Error && b instanceof Error) {
    if (a.name !== b.name || a.message !== b.message) return false;
    if (!compare(a.cause, b.cause, pairs)) return false;
  }
  if (Array.isArray(a) && Array.isArray(b) && a.length !== b.length) return false;
  const keys = ownKeys(a);
  return keys.length === ownKeys(b).length &&
    keys.every((key) =>
      Object.hasOwn(b, key) && compare(Reflect.get(a, key), Reflect.get(b, key), pairs)
    );
}

function covers(actual: unknown, expected: unknown, pairs: Pairs): boolean {
  if (sameValue(actual, expected)) return true;
  if (!isObject(actual) || !isObject(expected)) return false;
  if (pairs.get(expected) === actual) return true;
  pairs.set(expected, actual);

  if (expected instanceof Set) {
    return actual instanceof Set && [...expected].every((item) => hasItem(actual, item, new Map()));
  }
  if (expected instanceof Map) {
    return actual instanceof Map &&
      [...expected].every(([key, value]) =>
        actual.has(key) && covers(actual.get(key), value, pairs)
      );
  }
  const isBuiltIn = asText(expected) !== undefined || ArrayBuffer.isView(expected) ||
    expected instanceof ArrayBuffer;
  if (isBuiltIn) return equal(actual, expected);
  if (Array.isArray(expected) && !Array.isArray(actual)) return false;
  return Reflect.ownKeys(expected).filter((key) => !Array.isArray(expected) || key !== "length")
    .every((key) =>
      Reflect.has(actual, key) &&
      covers(Reflect.get(actual, key), Reflect.get(expected, key), pairs)
    );
}

/** Tells whether two values are the same; `NaN` is itself, and `0` is `-0`. */
function sameValue(a: unknown, b: unknown): boolean {
  return a === b || Object.is(a, b);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Tells whether two objects are of one class; no class counts as a plain object. */
function sameKind(a: object, b: object): boolean {
  const [kindA, kindB] = [a, b].map((value) => Object.getPrototypeOf(value) ?? Object.prototype);
  return kindA === kindB;
}

/** Gives the text that stands for a built-in whose contents are no properties. */
function asText(value: object): string | undefined {
  if (value instanceof Date) return `Date ${value.getTime()}`;
  if (value instanceof RegExp || value instanceof URL || value instanceof URLSearchParams) {
    return String(value);
  }
  return undefined;
}

function isTypedArray(value: object): value is Uint8Array {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

function compareItems(a: ArrayLike<unknown>, b: ArrayLike<unknown>): boolean {
  return a.length === b.length && Array.from(a).every((item, index) => sameValue(item, b[index]));
}

function hasItem(set: ReadonlySet<unknown>, item: unknown, pairs: Pairs): boolean {
  if (set.has(item)) return true;
  return isObject(item) && [...set].some((other) => compare(item, other, new Map(pairs)));
}

function hasEntry(
  map: ReadonlyMap<unknown, unknown>,
  [key, value]: [unknown, unknown],
  pairs: Pairs,
): boolean {
  if (map.has(key)) return compare(value, map.get(key), pairs);
  return isObject(key) &&
    [...map].some(([otherKey, otherValue]) =>
      compare(key, otherKey, new Map(pairs)) && compare(value, otherValue, new Map(pairs))
    );
}

/** Lists the names and symbols of an object's own enumerable properties. */
function ownKeys(value: object): PropertyKey[] {
  return Reflect.ownKeys(value).filter((key) =>
    Object.prototype.propertyIsEnumerable.call(value, key)
  );
}
