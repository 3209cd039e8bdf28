/**
 * Runs test files in Deno and in Node, and counts how their tests ended.
 *
 * @module
 */

import { run } from "./child.ts";
import { moduleFlags } from "./jsr.ts";
import { prepareNode } from "./node.ts";
import { judge, readDenoSummary, readTapSummary, sum, type Tally } from "./tally.ts";

/** Runs files in Deno, with every sanitizer on. */
export async function runInDeno(
  files: readonly string[],
  flags: readonly string[],
  filter: string | undefined,
): Promise<Tally> {
  const { code, output } = await run(Deno.execPath(), [
    "test",
    "-A",
    // Types are for `deno task check`, and those of a local checkout in the import map for no one.
    "--no-check",
    // Off by default in Deno 2.9.
    "--sanitize-ops",
    "--sanitize-resources",
    ...moduleFlags(),
    ...(filter === undefined ? [] : [`--filter=${filter}`]),
    ...flags,
    // Named one by one: with more than one folder, Deno 2.9 forgets its --ignore.
    ...files,
  ], { keepOutput: true });
  return judge(readDenoSummary(output), code);
}

/** Runs files in Node, each in a process of its own. */
export async function runInNode(
  files: readonly string[],
  filter: string | undefined,
): Promise<Tally> {
  const node = await prepareNode();
  const tallies: Tally[] = [];
  for (const file of files) {
    console.log(`running ${file} in Node`);
    tallies.push(await runNodeFile(node, file, filter));
  }
  return sum(tallies);
}

/**
 * Runs one file in Node.
 *
 * Not with `node --test`: that counts a file without a test as one test that passed.
 */
async function runNodeFile(
  node: string,
  file: string,
  filter: string | undefined,
): Promise<Tally> {
  const report = await Deno.makeTempFile({ suffix: ".tap" });
  try {
    const { code } = await run(node, [
      "--test-reporter=spec",
      "--test-reporter-destination=stdout",
      "--test-reporter=tap",
      `--test-reporter-destination=${report}`,
      ...(filter === undefined ? [] : [`--test-name-pattern=${asPattern(filter)}`]),
      file,
    ], { env: { NODE_OPTIONS: nodeOptions() } });
    return judge(readTapSummary(await Deno.readTextFile(report)), code);
  } finally {
    await Deno.remove(report);
  }
}

/** Gives the options that the test, and every Node process it starts, runs under. */
function nodeOptions(): string {
  return [
    Deno.env.get("NODE_OPTIONS") ?? "",
    `--import=${new URL("node_resolve.ts", import.meta.url).href}`,
    // For node:sqlite, which Node 24 calls experimental.
    "--disable-warning=ExperimentalWarning",
  ].join(" ").trim();
}

/** Turns a filter of `deno test`, a text or a `/pattern/`, into a pattern for Node. */
function asPattern(filter: string): string {
  const isPattern = filter.length > 2 && filter.startsWith("/") && filter.endsWith("/");
  return isPattern ? filter : filter.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
