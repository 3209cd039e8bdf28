/** Unit tests of the pure parts of the core: payloads, names, error texts, options and stamps. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { Origins } from "../core/origin.ts";
import { delay } from "@std/async";
import { runInNewContext } from "node:vm";
import { errorText } from "../core/error_text.ts";
import { CodecError, InvalidNameError, ReservedNameError } from "../core/errors.ts";
import { decodeJson, encodeJson } from "../core/json.ts";
import { checkLabel, checkName, describe } from "../core/names.ts";
import {
  checkChoice,
  checkCount,
  checkDuration,
  checkFunction,
  checkInstant,
  checkOptions,
  checkPatience,
  checkPositiveDuration,
  checkPriority,
  checkSignal,
  MAX_INSTANT,
} from "../core/options.ts";
import { checkSchema, decodePayload, decodePayloadNow, encodePayload } from "../core/schema.ts";
import type { StandardSchema } from "../core/schema.ts";
import { DEFAULT_STAMP, jobStamp, OUTBOX_STAMP, queueStamp } from "../core/stamp.ts";

const DO = "Cannot test";

/** The path of the fault in a payload. */
function pathOf(value: unknown): string {
  return assertThrows(() => encodeJson(value, DO), CodecError, DO).path;
}

Deno.test("encodeJson() writes the shortest JSON text, in the order of the keys", () => {
  assertEquals(encodeJson({ b: [1, null], a: "\u0000é" }, DO), '{"b":[1,null],"a":"\\u0000é"}');
  assertEquals(encodeJson([-0, 1e21, 0.1], DO), "[0,1e+21,0.1]");
  assertEquals(encodeJson(JSON.parse('{"__proto__":1}'), DO), '{"__proto__":1}');
});

Deno.test("encodeJson() takes plain objects of another realm, and no others", () => {
  assertEquals(encodeJson(runInNewContext('({ a: [1, { b: "c" }] })'), DO), '{"a":[1,{"b":"c"}]}');
  assertEquals(encodeJson(Object.create(null), DO), "{}");
  assertEquals(pathOf(runInNewContext("new Date(0)")), "$");
  assertEquals(pathOf(runInNewContext("new (class Order {})()")), "$");
  assertEquals(pathOf(Object.create(Object.create(null))), "$");
});

Deno.test("encodeJson() names the path of a fault", () => {
  const cases: readonly (readonly [path: string, value: unknown])[] = [
    ["$", undefined],
    ["$.items[3].at", { items: [0, 0, 0, { at: new Date(0) }] }],
    ["$[0][1]", [[1, NaN]]],
    ["$._a$1.b2", { _a$1: { b2: 1n } }],
    ['$["1a"]', { "1a": 1n }],
    ['$["a-b"]', { "a-b": 1n }],
    ['$["a\\"b"]', { 'a"b': 1n }],
    ['$["é"]', { "é": 1n }],
    ['$["__proto__.x"]', { "__proto__.x": 1n }],
    ['$.a["[symbol]"]', { a: { [Symbol("s")]: 1 } }],
  ];
  for (const [path, value] of cases) assertEquals(pathOf(value), path);
});

Deno.test("encodeJson() shortens a path of many levels in the middle", () => {
  let value: unknown = NaN;
  for (let level = 50; level >= 1; level--) value = { [`k${level}`]: value };
  const path = pathOf(value);
  assert(path.startsWith("$.k1.k2.k3"), path);
  assert(path.includes("…") && path.endsWith(".k48.k49.k50"), path);
});

Deno.test("encodeJson() takes 1,000 levels, not 1,001, and ends at a cycle", () => {
  const nested = (levels: number) => {
    let value: unknown = [];
    for (let level = 1; level < levels; level++) value = [value];
    return value;
  };
  assertEquals(encodeJson(nested(1_000), DO), "[".repeat(1_000) + "]".repeat(1_000));
  assertThrows(() => encodeJson(nested(1_001), DO), CodecError, "nesting past 1000 levels");
  assertThrows(() => encodeJson(nested(100_000), DO), CodecError, "nesting past 1000 levels");
  const cycle: unknown[] = [];
  // Twice: a walk of every path would never end.
  cycle.push(cycle, cycle);
  assertThrows(() => encodeJson(cycle, DO), CodecError, "a cycle is not JSON");
});

Deno.test("encodeJson() takes the same object in two places", () => {
  const address = { city: "Zürich" };
  assertEquals(encodeJson([address, address], DO), '[{"city":"Zürich"},{"city":"Zürich"}]');
});

Deno.test("encodeJson() is not deceived by a hidden toJSON()", () => {
  // JSON.stringify() calls it, but no key of the payload shows it: the payload would not come back.
  const hidden = { value: () => "something else" };
  for (const value of [{ a: 1 }, [1]]) {
    const payload = Object.defineProperty(value, "toJSON", hidden);
    let text: string;
    try {
      text = encodeJson(payload, DO);
    } catch (error) {
      assert(error instanceof CodecError);
      continue;
    }
    assertEquals(JSON.parse(text), Array.isArray(value) ? [1] : { a: 1 });
  }
});

Deno.test("encodeJson() refuses an array with properties, which would not come back", () => {
  const match = /b/.exec("abc");
  const error = assertThrows(() => encodeJson({ match }, DO), CodecError);
  assert(error.path.startsWith("$.match."), error.path);
});

Deno.test("decodeJson() reads what encodeJson() wrote, and nothing else", () => {
  const value = { list: [null, 0, "", "\0", { "": [] }], "__proto__x": -1.5 };
  assertEquals(decodeJson(encodeJson(value, DO), DO), value);
  assertEquals(Object.keys(decodeJson('{"__proto__":{"a":1}}', DO) ?? {}), ["__proto__"]);
  for (const text of ["", "{", "undefined", "NaN", "'a'", "1 2"]) {
    const error = assertThrows(() => decodeJson(text, DO), CodecError, DO);
    assertEquals(error.path, "$");
    assert(error.cause instanceof SyntaxError);
  }
});

Deno.test("checkName() and checkLabel() count bytes of UTF-8", () => {
  for (
    const name of ["a", "a".repeat(1_000), "é".repeat(500), "日".repeat(333), "🎉".repeat(250)]
  ) {
    assertEquals(checkName("queue", name, DO), name);
    assertEquals(checkLabel("key", name, DO), name);
  }
  for (const name of ["a".repeat(1_001), "é".repeat(501), "日".repeat(334), "🎉".repeat(251)]) {
    assertThrows(() => checkName("queue", name, DO), InvalidNameError, "1000 bytes");
    assertThrows(() => checkLabel("key", name, DO), InvalidNameError, "1000 bytes");
  }
});

Deno.test("checkName() reserves the prefix, checkLabel() does not", () => {
  for (const kind of ["channel", "stream", "queue", "lock", "outbox"] as const) {
    const error = assertThrows(() => checkName(kind, "__alkstore_x", DO), ReservedNameError, DO);
    assertEquals(error.rejectedName, "__alkstore_x");
    assertEquals(checkName(kind, "__alkstore", DO), "__alkstore");
  }
  for (const kind of ["consumer", "worker", "owner", "key"] as const) {
    assertEquals(checkLabel(kind, "__alkstore_x", DO), "__alkstore_x");
  }
});

Deno.test("a message shows the start of a long name, on one line", () => {
  const error = assertThrows(
    () => checkName("queue", `${"x".repeat(2_000)}`, DO),
    InvalidNameError,
  );
  assert(error.message.length < 250, error.message);
  const broken = assertThrows(() => checkName("queue", "a\n\0", DO), InvalidNameError);
  assert(broken.message.includes('"a\\n\\u0000"') && !broken.message.includes("\n"));
  assertEquals(broken.rejectedName, "a\n\0");
});

Deno.test("describe() says what a value is, never the whole of it", () => {
  const cases: readonly (readonly [unknown, string])[] = [
    [null, "null"],
    [undefined, "undefined"],
    [NaN, "NaN"],
    [true, "true"],
    [7n, "7n"],
    ["a", '"a"'],
    [[1], "an array"],
    [{}, "an object (Object)"],
    [new Date(0), "an object (Date)"],
    [Object.create(null), "an object (no prototype)"],
    [() => {}, "a function"],
    [Symbol("s"), "a symbol"],
  ];
  for (const [value, text] of cases) assertEquals(describe(value), text);
  assert(describe("x".repeat(1_000)).length < 100);
});

Deno.test("errorText() keeps the name and the message", () => {
  assertEquals(errorText(undefined), undefined);
  assertEquals(errorText(new RangeError("too far")), "RangeError: too far");
  assertEquals(errorText(new RangeError()), "RangeError");
  assertEquals(errorText("plain"), "plain");
  assertEquals(errorText({ code: 5 }), '{"code":5}');
  assertEquals([errorText(null), errorText(0), errorText(Symbol("s"))], ["null", "0", "Symbol(s)"]);
});

Deno.test("errorText() gives what every database takes, of at most 8 KiB", () => {
  assertEquals(errorText("a\0b\ud800c"), "a\uFFFDb\uFFFDc");
  const size = (text = "") => new TextEncoder().encode(text).length;
  assertEquals(errorText("x".repeat(8_192)), "x".repeat(8_192));
  for (const letter of ["x", "é", "日", "🎉"]) {
    for (let shift = 0; shift < 4; shift++) {
      const text = errorText("-".repeat(shift) + letter.repeat(9_000)) ?? "";
      assert(size(text) <= 8_192 && size(text) > 8_180, `${letter}: ${size(text)} bytes`);
      assert(text.endsWith(`${letter}…`) && !text.includes("\uFFFD"), text.slice(-9));
    }
  }
});

Deno.test("errorText() survives an error that cannot be read", () => {
  const hostile = { toJSON: () => fails() };
  const nameless = Object.defineProperty(new Error("x"), "message", { get: () => fails() });
  for (const error of [hostile, nameless, 1n]) assertEquals(typeof errorText(error), "string");
});

Deno.test("durations are rounded up to whole milliseconds", () => {
  assertEquals(checkDuration(0, "delay", DO), 0);
  assertEquals(checkDuration(0.001, "delay", DO), 1);
  assertEquals(checkPositiveDuration(1.5, "ttl", DO), 2);
  assertEquals(checkPatience(Infinity, "drain", DO), Infinity);
  for (const value of [-1, -0.001, NaN, Infinity, -Infinity, 1e20]) {
    assertThrows(() => checkDuration(value, "delay", DO), RangeError, "delay");
  }
  for (const value of [-1, NaN, -Infinity]) {
    assertThrows(() => checkPatience(value, "drain", DO), RangeError, "drain");
  }
  assertThrows(() => checkPositiveDuration(0, "ttl", DO), RangeError, "ttl");
  for (const value of ["1", null, undefined, 1n]) {
    assertThrows(() => checkDuration(value, "delay", DO), TypeError, "delay must be a number");
  }
});

Deno.test("counts, priorities and instants end where a column does", () => {
  assertEquals(checkCount(1, "limit", 1, DO), 1);
  assertEquals(checkCount(2 ** 53 - 1, "limit", 1, DO), 2 ** 53 - 1);
  for (const value of [0, 1.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => checkCount(value, "limit", 1, DO), RangeError, "limit");
  }
  for (const value of [-(2 ** 31), 0, 2 ** 31 - 1]) assertEquals(checkPriority(value, DO), value);
  for (const value of [-(2 ** 31) - 1, 2 ** 31, 0.5, NaN]) {
    assertThrows(() => checkPriority(value, DO), RangeError, "priority");
  }
  assertEquals(
    checkInstant(new Date(MAX_INSTANT), "runAt", DO),
    Date.UTC(9999, 11, 31, 23, 59, 59, 999),
  );
  for (const time of [MAX_INSTANT + 1, NaN]) {
    assertThrows(() => checkInstant(new Date(time), "runAt", DO), RangeError, "runAt");
  }
  assertThrows(() => checkInstant(0, "runAt", DO), TypeError, "runAt must be a Date");
});

Deno.test("options are objects with known fields; nothing stands for none", () => {
  checkOptions(undefined, ["a"], DO);
  checkOptions({}, ["a"], DO);
  checkOptions({ a: 1 }, ["a", "b"], DO);
  assertThrows(
    () => checkOptions({ a: 1, c: 2 }, ["a", "b"], DO),
    TypeError,
    '"c", known are a, b',
  );
  for (const value of [null, 5, "a", [], true]) {
    assertThrows(() => checkOptions(value, ["a"], DO), TypeError, "options must be an object");
  }
  checkChoice(false, [true, false], "tx", DO);
  assertThrows(() => checkChoice(0, [true, false], "tx", DO), TypeError, "true, false, got 0");
  checkFunction(() => {}, "handler", DO);
  assertThrows(() => checkFunction({}, "handler", DO), TypeError, "handler must be a function");
  const { signal } = new AbortController();
  assertEquals([checkSignal({ signal }, DO), checkSignal(undefined, DO)], [signal, undefined]);
});

Deno.test("queueStamp() fills in the defaults", () => {
  assertEquals(queueStamp(undefined, DO), DEFAULT_STAMP);
  assertEquals(queueStamp({}, DO), DEFAULT_STAMP);
  assertEquals(DEFAULT_STAMP, {
    priority: 0,
    delay: 0,
    runAt: undefined,
    maxAttempts: 5,
    visibility: 60_000,
    backoff: "exponential 5000 3600000 0.1",
    expires: undefined,
  });
  assertEquals(OUTBOX_STAMP, { ...DEFAULT_STAMP, backoff: "exponential 5000 3600000 0" });
});

Deno.test("jobStamp() lays the options of a job over the stamp of its queue", () => {
  const queue = queueStamp({ visibility: 10.2, maxAttempts: 9, backoff: 1 }, DO);
  assertEquals(jobStamp(queue, undefined, DO), queue);
  assertEquals(jobStamp(queue, {}, DO), queue);
  assertEquals(jobStamp(queue, { delay: 1.5, expires: 3, priority: -1, maxAttempts: 2 }, DO), {
    priority: -1,
    delay: 2,
    runAt: undefined,
    maxAttempts: 2,
    visibility: 11,
    backoff: "exponential 1 3600000 0.1",
    expires: 3,
  });
  const runAt = new Date(MAX_INSTANT);
  assertEquals(jobStamp(queue, { runAt }, DO).runAt, MAX_INSTANT);
  assertThrows(() => jobStamp(queue, { delay: 0, runAt }, DO), TypeError, "not both");
  assertThrows(() => jobStamp(queue, { delay: 5, expires: 5 }, DO), RangeError, "expire in 5 ms");
  assertThrows(() => jobStamp(queue, { runAt, expires: 5 }, DO), RangeError, "expire in 5 ms");
  const expired = { runAt: new Date(0), expires: 5 };
  assertEquals(jobStamp(queue, expired, DO).expires, 5);
});

Deno.test("a schema checks on the way in and converts on the way out", () => {
  const schema: StandardSchema = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) =>
        value === 1
          ? { value: "one" }
          : { issues: [{ message: "not 1", path: ["a", 0, { key: "b" }] }] },
    },
  };
  assertEquals(encodePayload(schema, 1, DO), "1");
  assertEquals(decodePayload(schema, "1", DO), "one");
  assertEquals(decodePayload(undefined, "1", DO), 1);
  for (const call of [() => encodePayload(schema, 2, DO), () => decodePayload(schema, "2", DO)]) {
    const error = assertThrows(call, CodecError, "not 1 at $.a[0].b");
    assertEquals(error.path, "$.a[0].b");
    assert(Array.isArray(error.cause));
  }
  assertEquals(checkSchema(schema, DO), schema);
  for (const value of [null, 5, {}, () => {}, { "~standard": null }]) {
    assertThrows(() => checkSchema(value, DO), TypeError, "Standard Schema");
  }
});

Deno.test("an asynchronous schema is waited for, or refused where nobody can wait", async () => {
  const validate = (value: unknown) => Promise.resolve({ value: [value] });
  const schema: StandardSchema = { "~standard": { version: 1, vendor: "test", validate } };
  assertEquals(await encodePayload(schema, 1, DO), "1");
  assertEquals(await decodePayload(schema, "1", DO), [1]);
  assertThrows(() => decodePayloadNow(schema, "1", DO), TypeError, "asynchronously");
  const refusing: StandardSchema = {
    "~standard": { version: 1, vendor: "test", validate: () => Promise.reject(new Error("x")) },
  };
  // Its rejection is nobody's: the test fails when it becomes an unhandled one.
  assertThrows(() => decodePayloadNow(refusing, "1", DO), TypeError, "asynchronously");
  await delay(1);
});

function fails(): never {
  throw new Error("cannot be read");
}

Deno.test("Origins claims no place of a transaction it did not trace, and traces all from then on", () => {
  const origins = new Origins();
  const first = origins.trace();
  for (let count = 1; count < 33; count++) origins.trace();
  const untraced = origins.trace();
  assert(untraced().startsWith("probably "), untraced());
  for (const traced of [first, origins.trace()]) {
    assert(traced().includes("core_test.ts") && !traced().includes("probably"), traced());
  }
});
