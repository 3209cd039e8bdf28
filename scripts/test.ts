/**
 * Runs the tests, in Deno and in Node, and closes with one line that counts them all.
 *
 * Without arguments it runs everything. Paths choose files or folders, `--filter` chooses tests by
 * name in both runtimes, and any other flag goes to `deno test`.
 *
 * @module
 */

import { closingLine, sum, type Tally } from "./tally.ts";
import { runInDeno, runInNode } from "./test_runners.ts";

/** Where tests are looked for when no path is given. */
const folders = ["tests", "scripts"];

/** Where the tests that only Node runs live. */
const nodeFolder = "tests/node/";

/** What the arguments ask for. */
interface Request {
  readonly paths: readonly string[];
  readonly flags: readonly string[];
  readonly filter: string | undefined;
}

/** Sorts the arguments into paths, flags and the filter. */
function readArguments(args: readonly string[]): Request {
  const paths: string[] = [];
  const flags: string[] = [];
  let filter: string | undefined;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? "";
    if (arg === "--filter") filter = args[at += 1];
    else if (arg.startsWith("--filter=")) filter = arg.slice("--filter=".length);
    else if (arg.startsWith("-")) flags.push(arg);
    else paths.push(arg.replace(/^\.\//, "").replace(/\/$/, ""));
  }
  return { paths, flags, filter };
}

/** Lists the test files under a path, or the path itself when it is a file. */
async function listTests(path: string): Promise<string[]> {
  if ((await Deno.stat(path)).isFile) return [path];
  const files: string[] = [];
  for await (const entry of Deno.readDir(path)) {
    const inner = `${path}/${entry.name}`;
    if (entry.isDirectory) files.push(...await listTests(inner));
    else if (entry.name.endsWith("_test.ts")) files.push(inner);
  }
  return files.sort();
}

/** Runs what is asked for and adds it up. */
async function runAll({ paths, flags, filter }: Request): Promise<Tally> {
  const files: string[] = [];
  for (const path of paths.length > 0 ? paths : folders) files.push(...await listTests(path));
  const inNode = files.filter((file) => file.startsWith(nodeFolder));
  const inDeno = files.filter((file) => !file.startsWith(nodeFolder));

  const tallies: Tally[] = [];
  const isWanted = (files: readonly string[]): boolean => paths.length === 0 || files.length > 0;
  if (isWanted(inDeno)) tallies.push(await runInDeno(inDeno, flags, filter));
  if (isWanted(inNode)) tallies.push(await runInNode(inNode, filter));

  const total = sum(tallies);
  // A filter may leave one runtime without a test, but not both.
  const mustHaveRun = filter === undefined && tallies.length > 0 ? tallies : [total];
  if (mustHaveRun.every(({ passed, failed }) => passed + failed > 0)) return total;
  console.error("No test ran where some were expected");
  return { ...total, failed: total.failed + 1 };
}

/** Runs the tests, prints the closing line, and gives the exit code. */
async function main(args: readonly string[]): Promise<number> {
  let total: Tally;
  try {
    total = await runAll(readArguments(args));
  } catch (error) {
    console.error(error);
    total = { passed: 0, failed: 1, skipped: 0 };
  }
  console.log(closingLine(total));
  return total.failed > 0 ? 1 : 0;
}

// Deno takes a file of this name for a test module.
if (import.meta.main) Deno.exit(await main(Deno.args));
