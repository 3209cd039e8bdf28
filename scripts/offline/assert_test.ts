// Imports the bare name: where JSR answers, these tests ask the same of the package itself.
import {
  assert,
  assertArrayIncludes,
  assertEquals,
  assertExists,
  assertFalse,
  assertGreater,
  assertGreaterOrEqual,
  assertInstanceOf,
  AssertionError,
  assertLess,
  assertLessOrEqual,
  assertMatch,
  assertNotEquals,
  assertObjectMatch,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
  fail,
  unreachable,
} from "@std/assert";

/** Fails unless the assertion in `fn` does. */
function assertRefuses(fn: () => void): void {
  assertThrows(fn, AssertionError);
}

/** Pairs that are equal in depth. */
const equals: ReadonlyArray<readonly [unknown, unknown]> = [
  [NaN, NaN],
  [0, -0],
  [10n, 10n],
  [{ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }],
  [Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  [new Date(5), new Date(5)],
  [/a/g, /a/g],
  [new Uint8Array([1, 2]), new Uint8Array([1, 2])],
  [new Set([1, { a: 1 }]), new Set([{ a: 1 }, 1])],
  [new Map([["a", { b: 1 }]]), new Map([["a", { b: 1 }]])],
];

/** Pairs that differ. */
const differences: ReadonlyArray<readonly [unknown, unknown]> = [
  [1, "1"],
  [1, 1n],
  [null, undefined],
  [{ a: undefined }, {}],
  [{ a: undefined }, { b: undefined }],
  [[1, 2], [2, 1]],
  [[1], [1, undefined]],
  [new Date(5), new Date(6)],
  [/a/g, /a/],
  [new Uint8Array([1]), new Uint8Array([2])],
  [new Uint8Array([1]), [1]],
  [new Set([1, 2]), new Set([1, 3])],
  [new Map([["a", 1]]), new Map([["a", 2]])],
  [new (class A {})(), {}],
  [new Error("a"), new Error("b")],
  [() => {}, () => {}],
];

Deno.test("assertEquals() holds for values that are equal in depth, and only for them", () => {
  for (const [a, b] of equals) {
    assertEquals(a, b);
    assertRefuses(() => assertNotEquals(a, b));
  }
  for (const [a, b] of differences) {
    assertNotEquals(a, b);
    assertRefuses(() => assertEquals(a, b));
  }
});

Deno.test("assertEquals() ends on a cycle", () => {
  const a: { self?: unknown } = {};
  const b: { self?: unknown } = {};
  a.self = a;
  b.self = b;
  assertEquals(a, b);
});

Deno.test("assertEquals() says what differs, and the caller's message", () => {
  const error = assertThrows(() => assertEquals({ a: 1 }, { a: 2 }, "rows"), AssertionError);
  assertStringIncludes(error.message, "Values are not equal: rows");
  assertStringIncludes(error.message, "a: 2");
});

Deno.test("assertStrictEquals() holds for the same value only", () => {
  const value = {};
  assertStrictEquals(value, value);
  assertStrictEquals(NaN, NaN);
  assertRefuses(() => assertStrictEquals({}, {}));
  assertRefuses(() => assertStrictEquals(0, -0));
});

Deno.test("assertObjectMatch() holds for a part of an object, in depth", () => {
  const actual = { a: 1, b: { c: [1, 2], d: new Map([["x", 1], ["y", 2]]) }, e: null };
  assertObjectMatch(actual, { a: 1 });
  assertObjectMatch(actual, { b: { c: [1] } });
  assertObjectMatch(actual, { b: { d: new Map([["y", 2]]) }, e: null });
  assertRefuses(() => assertObjectMatch(actual, { a: 2 }));
  assertRefuses(() => assertObjectMatch(actual, { f: undefined }));
  assertRefuses(() => assertObjectMatch(actual, { b: { c: [2] } }));
  assertRefuses(() => assertObjectMatch(actual, { e: { c: 1 } }));
});

Deno.test("assertArrayIncludes() finds items by depth", () => {
  assertArrayIncludes([{ a: 1 }, { b: 2 }], [{ b: 2 }]);
  assertRefuses(() => assertArrayIncludes([1, 2], [2, 3]));
});

Deno.test("assertThrows() checks class and message, and gives the error", () => {
  const throwing = (): never => {
    throw new RangeError("too far");
  };
  assertStrictEquals(assertThrows(throwing, RangeError, "far").message, "too far");
  assertInstanceOf(assertThrows(throwing), RangeError);
  assertRefuses(() => assertThrows(throwing, TypeError));
  assertRefuses(() => assertThrows(throwing, RangeError, "near"));
  assertRefuses(() => assertThrows(() => {}));
});

Deno.test("assertRejects() checks class and message, and gives the reason", async () => {
  const rejecting = (): Promise<never> => Promise.reject(new RangeError("too far"));
  assertStrictEquals((await assertRejects(rejecting, RangeError, "far")).message, "too far");
  await assertRejects(() => assertRejects(rejecting, TypeError), AssertionError);
  await assertRejects(() => assertRejects(() => Promise.resolve()), AssertionError);
  await assertRejects(
    () =>
      assertRejects(() => {
        throw new RangeError("too far");
      }),
    AssertionError,
    "Function throws when expected to reject",
  );
});

Deno.test("the small assertions hold where they should, and fail elsewhere", () => {
  assert(1);
  assertFalse(0);
  assertExists(0);
  assertMatch("abc", /b/);
  assertStringIncludes("abc", "bc");
  assertInstanceOf(new Date(), Date);
  assertGreater(2, 1);
  assertGreaterOrEqual(2, 2);
  assertLess(1, 2);
  assertLessOrEqual(2, 2);
  const refused = [
    () => assert(0),
    () => assertFalse(1),
    () => assertExists(null),
    () => assertMatch("abc", /d/),
    () => assertStringIncludes("abc", "d"),
    () => assertInstanceOf({}, Date),
    () => assertGreater(2, 2),
    () => assertGreaterOrEqual(1, 2),
    () => assertLess(2, 2),
    () => assertLessOrEqual(2, 1),
    () => fail("x"),
    () => unreachable(),
  ];
  for (const fn of refused) assertRefuses(fn);
});
