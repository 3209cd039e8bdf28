/**
 * Checks everything but the tests: format, lint, types, documentation, publishing and examples.
 *
 * A failed step does not hide the later ones.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import denoJson from "../deno.json" with { type: "json" };
import { run } from "./child.ts";
import { moduleFlags } from "./jsr.ts";
import { readDenoSummary } from "./tally.ts";

const root = fileURLToPath(new URL("../", import.meta.url));

/** One check; it holds when the command succeeds. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** Tells what is wrong all the same with the output of a command that succeeded. */
  readonly objection?: (output: string) => string | undefined;
  /** Folder to run in. @default {the root of the tree} */
  readonly cwd?: string;
}

/** Lists the checks; `scratch` is a folder where the examples may leave files. */
function listSteps(scratch: string): Step[] {
  const flags = moduleFlags();
  return [
    { name: "format", command: ["fmt", "--check"] },
    { name: "lint", command: ["lint"] },
    { name: "types", command: ["check", ...flags, "."] },
    {
      name: "documentation",
      command: ["doc", "--lint", ...flags, ...Object.values(denoJson.exports)],
    },
    {
      name: "an example for every export",
      command: ["run", "-A", ...flags, "scripts/bare_exports.ts"],
    },
    {
      name: "publish",
      // What is published imports nothing from JSR statically, so this works without JSR too.
      command: ["publish", "--dry-run", "--allow-dirty"],
      objection: (output) => /^warning\b.*/im.exec(output)?.[0],
    },
    {
      name: "examples",
      command: [
        "test",
        "--doc",
        "-A",
        ...flags,
        `--config=${root}deno.json`,
        ...["README.md", "mod.ts", "core/", "engines/"].map((path) => root + path),
      ],
      cwd: scratch,
      objection: (output) => readDenoSummary(output)?.passed ? undefined : "no example was run",
    },
  ];
}

/** Runs one check and tells whether it holds. */
async function holds({ name, command, objection, cwd = root }: Step): Promise<boolean> {
  console.log(`check ${name}: deno ${command[0]} ...`);
  const { code, output } = await run(Deno.execPath(), command, { cwd, keepOutput: true });
  const complaint = code === 0
    ? objection?.(stripVTControlCharacters(output))
    : `exit code ${code}`;
  console.log(`check ${name}: ${complaint === undefined ? "ok" : `FAILED (${complaint})`}\n`);
  return complaint === undefined;
}

/** Runs every check and gives the exit code. */
async function main(): Promise<number> {
  const scratch = await Deno.makeTempDir({ prefix: "alkstore_examples_" });
  const failed: string[] = [];
  try {
    for (const step of listSteps(scratch)) {
      if (!await holds(step)) failed.push(step.name);
    }
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
  console.log(failed.length === 0 ? "All checks hold" : `Failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main());
