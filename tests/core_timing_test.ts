/** Unit tests of the pure parts of the core that compute with time: retry curves and timers. */

import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { delay } from "@std/async";
import { getEventListeners } from "node:events";
import process from "node:process";
import {
  type Backoff,
  backoffDelay,
  checkBackoff,
  decodeBackoff,
  DEFAULT_BACKOFF,
  encodeBackoff,
  OUTBOX_BACKOFF,
} from "../core/retry.ts";
import { Alarm, Backoffs, sleep } from "../core/timers.ts";

const DO = "Cannot test";

/** The delays after the first attempts, without chance. */
function schedule(backoff: Backoff, attempts: number): number[] {
  const curve = checkBackoff({ jitter: 0, ...backoff }, DO);
  return Array.from({ length: attempts }, (_, index) => backoffDelay(curve, index + 1));
}

Deno.test("backoffDelay() follows the table of each curve", () => {
  assertEquals(schedule({}, 12), [
    5_000,
    10_000,
    20_000,
    40_000,
    80_000,
    160_000,
    320_000,
    640_000,
    1_280_000,
    2_560_000,
    3_600_000,
    3_600_000,
  ]);
  assertEquals(schedule({ kind: "linear", base: 1_000, cap: 3_500 }, 5), [
    1_000,
    2_000,
    3_000,
    3_500,
    3_500,
  ]);
  assertEquals(schedule({ kind: "constant", base: 7 }, 3), [7, 7, 7]);
  assertEquals(schedule({ kind: "constant", base: 7, cap: 5 }, 2), [5, 5]);
  assertEquals(schedule({ base: 0 }, 3), [0, 0, 0]);
});

Deno.test("backoffDelay() spreads a delay by its jitter, never past the cap", () => {
  const curve = checkBackoff({ base: 1_000, cap: 4_000, jitter: 0.1 }, DO);
  const spread = (attempt: number) =>
    [0, 0.25, 0.5, 0.75, 1].map((chance) => backoffDelay(curve, attempt, () => chance));
  assertEquals(spread(1), [900, 950, 1_000, 1_050, 1_100]);
  assertEquals(spread(2), [1_800, 1_900, 2_000, 2_100, 2_200]);
  assertEquals(spread(3), [3_600, 3_800, 4_000, 4_000, 4_000]);
  const wild = checkBackoff({ base: 1_000, jitter: 1 }, DO);
  assertEquals([backoffDelay(wild, 1, () => 0), backoffDelay(wild, 1, () => 1)], [0, 2_000]);
});

Deno.test("backoffDelay() is random where nobody says otherwise", () => {
  const delays = new Set(Array.from({ length: 50 }, () => backoffDelay(DEFAULT_BACKOFF, 1)));
  assert(delays.size > 1);
  for (const delay of delays) assert(delay >= 4_500 && delay <= 5_500, `${delay} ms`);
});

Deno.test("backoffDelay() gives whole milliseconds up to the cap for any attempt", () => {
  for (const kind of ["exponential", "linear", "constant"] as const) {
    for (const base of [0, 0.3, 5_000, 1e12, Number.MAX_VALUE]) {
      const curve: Required<Backoff> = { kind, base, cap: 3_600_000, jitter: 1 };
      for (const attempt of [0, 1, 53, 54, 1_100, 500_000, 1e6, Number.MAX_SAFE_INTEGER]) {
        for (const chance of [0, 0.5, 1]) {
          const delay = backoffDelay(curve, attempt, () => chance);
          assert(
            Number.isSafeInteger(delay) && delay >= 0 && delay <= 3_600_000,
            `${kind} ${base}, attempt ${attempt}: ${delay}`,
          );
        }
      }
    }
  }
});

Deno.test("checkBackoff() fills in the defaults", () => {
  assertEquals(checkBackoff(undefined, DO), DEFAULT_BACKOFF);
  assertEquals(checkBackoff({}, DO), DEFAULT_BACKOFF);
  assertEquals(checkBackoff({ cap: undefined }, DO), DEFAULT_BACKOFF);
  assertEquals(checkBackoff(7, DO), { ...DEFAULT_BACKOFF, base: 7 });
  assertEquals(DEFAULT_BACKOFF, { kind: "exponential", base: 5_000, cap: 3_600_000, jitter: 0.1 });
  assertEquals(OUTBOX_BACKOFF, { ...DEFAULT_BACKOFF, jitter: 0 });
});

Deno.test("checkBackoff() refuses what is no curve", () => {
  for (const value of [null, "5", [], true, { nope: 1 }, { base: "5" }, { kind: "cubic" }]) {
    assertThrows(() => checkBackoff(value, DO), TypeError, `${DO}:`);
  }
  for (const value of [-1, NaN, Infinity, { cap: -1 }, { base: NaN }, { jitter: 1.1 }]) {
    assertThrows(() => checkBackoff(value, DO), RangeError, `${DO}:`);
  }
});

Deno.test("a stamped curve comes back as it was stamped", () => {
  const curves: Required<Backoff>[] = [
    DEFAULT_BACKOFF,
    OUTBOX_BACKOFF,
    { kind: "linear", base: 0.25, cap: 1e12, jitter: 0.3 },
    { kind: "constant", base: 0, cap: 0, jitter: 1 },
  ];
  for (const curve of curves) assertEquals(decodeBackoff(encodeBackoff(curve)), curve);
});

Deno.test("a stamp that nobody of us wrote stands for the default curve", () => {
  for (const text of ["", "cubic 1 2 0", "linear", "linear x 2 0", "linear -1 2 0", "{}"]) {
    assertEquals(decodeBackoff(text), DEFAULT_BACKOFF);
  }
});

Deno.test("Alarm.set() replaces what was set, and rings once", async () => {
  const rung = Promise.withResolvers<void>();
  let rings = 0;
  const alarm = new Alarm(() => {
    rings++;
    rung.resolve();
  });
  alarm.set(60_000);
  alarm.set(5);
  await rung.promise;
  await sleep(10);
  assertEquals(rings, 1);
});

Deno.test("Alarm.setEarlier() moves an alarm forward, never back", async () => {
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  const early = new Alarm(() => order.push("early"));
  early.setEarlier(1);
  early.setEarlier(60_000);
  const moved = new Alarm(() => {
    order.push("moved");
    done.resolve();
  });
  moved.setEarlier(60_000);
  moved.setEarlier(20);
  await done.promise;
  assertEquals(order, ["early", "moved"]);
});

Deno.test("Alarm waits in parts where a delay is longer than a timer can be", async () => {
  const warnings: string[] = [];
  const warn = (warning: Error) => warnings.push(warning.name);
  process.on("warning", warn);
  const order: string[] = [];
  const alarms = [2 ** 31, 2 ** 40, 253_402_300_799_999, Infinity].map((delay) => {
    const alarm = new Alarm(() => order.push(`${delay}`));
    alarm.set(delay);
    return alarm;
  });
  // A timer that is set too far rings at once, and says so.
  await sleep(20);
  order.push("20");
  for (const alarm of alarms) alarm.clear();
  process.off("warning", warn);
  assertEquals([order, warnings], [["20"], []]);
});

Deno.test("Alarm rings by the monotonic clock, not when a timer is early", async () => {
  const rung = Promise.withResolvers<void>();
  let rings = 0;
  const alarm = new Alarm(() => {
    rings++;
    rung.resolve();
  });
  const { now } = performance;
  const start = performance.now();
  performance.now = () => start;
  try {
    alarm.set(5);
    await delay(30);
    assertEquals(rings, 0);
  } finally {
    performance.now = now;
  }
  await rung.promise;
});

Deno.test("Alarm.clear() leaves nothing behind", async () => {
  let rings = 0;
  const alarm = new Alarm(() => rings++);
  alarm.set(1);
  alarm.clear();
  await sleep(10);
  assertEquals(rings, 0);
  // Cleared is as good as new.
  alarm.setEarlier(60_000);
  alarm.clear();
});

Deno.test("Alarm can be set again while it rings", async () => {
  const done = Promise.withResolvers<number>();
  let rings = 0;
  const alarm: Alarm = new Alarm(() => ++rings < 3 ? alarm.set(1) : done.resolve(rings));
  alarm.set(-5);
  assertEquals(await done.promise, 3);
});

Deno.test("sleep() takes at least its time", async () => {
  for (const delay of [0, 1, 10.5]) {
    const start = performance.now();
    await sleep(delay);
    // A timer may be a fraction early.
    assert(performance.now() - start > delay - 1);
  }
});

Deno.test("sleep() rejects with the signal's reason, and leaves no timer", async () => {
  const reason = new Error("enough");
  const early = await assertRejects(() => sleep(60_000, AbortSignal.abort(reason)));
  assertStrictEquals(early, reason);
  const controller = new AbortController();
  const sleeping = sleep(60_000, controller.signal);
  controller.abort(reason);
  assertStrictEquals(await assertRejects(() => sleeping), reason);
});

Deno.test("sleep() leaves nothing on a signal that outlives it", async () => {
  const { signal } = new AbortController();
  const sleeping = sleep(1, signal);
  assertEquals(getEventListeners(signal, "abort").length, 1);
  await sleeping;
  assertEquals(getEventListeners(signal, "abort").length, 0);
});

Deno.test("Backoffs doubles up to its most, within a quarter, and starts again", () => {
  const backoffs = new Backoffs(100, 1_000);
  const around = (delay: number, middle: number) =>
    assert(delay >= middle * 0.75 && delay <= middle * 1.25, `${delay} around ${middle}`);
  for (const middle of [100, 200, 400, 800, 1_000, 1_000]) around(backoffs.next(), middle);
  backoffs.reset();
  around(backoffs.next(), 100);
});
