// Imports the bare name: where JSR answers, these tests ask the same of the package itself.
import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { deadline, delay, retry, RetryError } from "@std/async";

Deno.test("delay() rejects with the signal's reason, before and while it waits", async () => {
  const reason = new Error("enough");
  const early = await assertRejects(() => delay(60_000, { signal: AbortSignal.abort(reason) }));
  assertStrictEquals(early, reason);

  const controller = new AbortController();
  const waiting = delay(60_000, { signal: controller.signal });
  controller.abort(reason);
  assertStrictEquals(await assertRejects(() => waiting), reason);
});

Deno.test("deadline() gives what the promise gives, and leaves no timer", async () => {
  assertEquals(await deadline(Promise.resolve(1), 60_000), 1);
  await assertRejects(() => deadline(Promise.reject(new RangeError("x")), 60_000), RangeError);
});

Deno.test("deadline() rejects with a TimeoutError when the time is over", async () => {
  const never = new Promise<void>(() => {});
  const error = await assertRejects(() => deadline(never, 1), DOMException);
  assertEquals(error.name, "TimeoutError");
});

Deno.test("retry() tries again until it succeeds", async () => {
  let calls = 0;
  const attempt = (): number => {
    calls += 1;
    if (calls < 3) throw new Error("not yet");
    return calls;
  };
  assertEquals(await retry(attempt, { minTimeout: 1 }), 3);
});

Deno.test("retry() gives up with the last error as the cause", async () => {
  const cause = new Error("never");
  const attempt = (): Promise<never> => Promise.reject(cause);
  const error = await assertRejects(
    () => retry(attempt, { minTimeout: 1, maxAttempts: 2 }),
    RetryError,
  );
  assertStrictEquals(error.cause, cause);
});

Deno.test("retry() passes on an error that is not worth another attempt", async () => {
  const attempt = (): Promise<never> => Promise.reject(new RangeError("final"));
  await assertRejects(() => retry(attempt, { isRetriable: () => false }), RangeError, "final");
});
