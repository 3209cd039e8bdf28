import { assert, assertEquals, assertExists } from "@std/assert";
import type { Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { claim } from "./queue_jobs.ts";

/** How much of an error is kept, in bytes of UTF-8. */
const LIMIT = 8 * 1_024;

/** The text that is kept of an error. */
async function kept(store: Store<unknown>, error: unknown): Promise<string | undefined> {
  const queue = store.queue("q");
  await queue.enqueue(1);
  const job = await claim(queue);
  assertEquals(await job.fail(error), true);
  const snapshot = await queue.getJob(job.id);
  assertExists(snapshot);
  assertEquals(snapshot.reason, "failed");
  return snapshot.lastError;
}

function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** A thrown value, whatever it is, is kept as a text that every database takes. */
export function queueErrors(harness: Harness): void {
  const known: readonly [what: string, error: unknown, text: string | undefined][] = [
    ["an error", new RangeError("too far"), "RangeError: too far"],
    ["a string", "plain words", "plain words"],
    ["an object", { code: 42 }, `{"code":42}`],
    ["null", null, "null"],
    ["nothing", undefined, undefined],
    ["U+0000", "a\0b", "a\uFFFDb"],
    ["a lone surrogate", "a\uD800b", "a\uFFFDb"],
    ["a lone low surrogate at the end", "a\uDC00", "a\uFFFD"],
    ["an error with U+0000 in it", new Error("a\0b"), "Error: a\uFFFDb"],
    ["emoji", "a 😀 b", "a 😀 b"],
    ["quotes and a semicolon", `'; drop table "x"; --`, `'; drop table "x"; --`],
  ];
  for (const [what, error, text] of known) {
    testStore(harness, `job.fail() keeps ${what} as a text`, async (store) => {
      assertEquals(await kept(store, error), text);
    });
  }

  for (const letter of ["x", "ä", "語", "😀"]) {
    testStore(harness, `job.fail() cuts 20 KiB of ${letter} to 8 KiB`, async (store) => {
      const text = await kept(store, letter.repeat(20 * 1_024 / bytes(letter)));
      assertExists(text);
      assert(bytes(text) <= LIMIT, `${bytes(text)} bytes`);
      assert(bytes(text) > LIMIT - 8, `${bytes(text)} bytes`);
      assert(text.isWellFormed());
      assert(text.startsWith(letter.repeat(1_000)));
      assert(!text.includes("\uFFFD"));
    });
  }

  testStore(harness, "an error of 8 KiB is kept whole", async (store) => {
    const text = "x".repeat(LIMIT);
    assertEquals(await kept(store, text), text);
  });

  testStore(harness, "job.retry() sanitises the error too", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    await (await claim(queue)).retry({ delay: 0, error: `\0\uDFFF${"y".repeat(20 * 1_024)}` });
    const { lastError } = await claim(queue);
    assertExists(lastError);
    assert(lastError.startsWith("\uFFFD\uFFFDyyy"));
    assert(bytes(lastError) <= LIMIT);
  });

  const hostile: readonly [what: string, error: unknown][] = [
    ["whose toJSON() throws", {
      toJSON() {
        throw new Error("no");
      },
    }],
    [
      "that refers to itself",
      (() => {
        const self: Record<string, unknown> = {};
        return self.self = self;
      })(),
    ],
    [
      "whose message cannot be read",
      Object.defineProperty(new Error(), "message", {
        get() {
          throw new Error("no");
        },
      }),
    ],
    ["without a text", Object.create(null)],
    ["that is a symbol", Symbol("odd")],
    ["that is a bigint", 1n],
    ["that is a function", () => {}],
  ];
  for (const [what, error] of hostile) {
    testStore(harness, `job.fail() takes a value ${what}`, async (store) => {
      assertEquals(typeof await kept(store, error), "string");
    });
  }
}
