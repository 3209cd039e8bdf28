import { assertEquals } from "@std/assert";
import { closingLine, judge, readDenoSummary, readTapSummary, sum } from "./tally.ts";

Deno.test("readDenoSummary() reads the last summary, coloured or not", () => {
  const output = [
    "ok | 1 passed | 0 failed (1ms)",
    "\x1b[31mFAILED\x1b[0m | 12 passed (3 steps) | 2 failed (1 step) | 4 ignored \x1b[90m(2s)\x1b[0m",
    "error: Test failed",
  ].join("\n");
  assertEquals(readDenoSummary(output), { passed: 12, failed: 2, skipped: 4 });
  assertEquals(readDenoSummary("ok | 3 passed | 0 failed | 7 filtered out (1ms)\n"), {
    passed: 3,
    failed: 0,
    skipped: 0,
  });
  assertEquals(readDenoSummary("error: Type checking failed."), undefined);
});

Deno.test("readTapSummary() counts a cancelled test as failed and a todo as skipped", () => {
  const report =
    "1..2\n# tests 9\n# suites 0\n# pass 4\n# fail 1\n# cancelled 1\n# skipped 2\n# todo 1\n";
  assertEquals(readTapSummary(report), { passed: 4, failed: 2, skipped: 3 });
  assertEquals(readTapSummary("TAP version 13\n"), undefined);
});

Deno.test("judge() finds a failure in every run that went wrong", () => {
  const good = { passed: 3, failed: 0, skipped: 0 };
  assertEquals(judge(good, 0), good);
  assertEquals(judge(good, 1), { ...good, failed: 1 });
  assertEquals(judge(undefined, 0), { passed: 0, failed: 1, skipped: 0 });
});

Deno.test("closingLine() names the skipped tests only when there are some", () => {
  const part = { passed: 1, failed: 0, skipped: 0 };
  assertEquals(closingLine(sum([part, part])), "2 passed, 0 failed");
  assertEquals(closingLine({ ...part, skipped: 1 }), "1 passed, 0 failed, 1 skipped");
});
