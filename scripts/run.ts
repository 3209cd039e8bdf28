/**
 * Runs a task: `deno run -A scripts/run.ts <task> [arguments]`.
 *
 * Every task of `deno.json` comes through here, so that the question where JSR packages come from
 * is asked once, answered in one line, and settled for every process that follows.
 *
 * @module
 */

import { run } from "./child.ts";
import { decide, moduleFlags } from "./jsr.ts";

/** The `deno` command behind each task; the task's arguments follow it. */
const tasks: Readonly<Record<string, (flags: readonly string[]) => readonly string[]>> = {
  bench: (flags) => ["bench", "-A", ...flags],
  check: (flags) => ["run", "-A", ...flags, "scripts/check.ts"],
  demo: (flags) => ["run", "-A", ...flags, "scripts/demo.ts"],
  fmt: () => ["fmt"],
  test: (flags) => ["run", "-A", ...flags, "scripts/test.ts"],
};

/** Runs the task and gives its exit code. */
async function main(name: string | undefined, args: readonly string[]): Promise<number> {
  const task = name !== undefined && Object.hasOwn(tasks, name) ? tasks[name] : undefined;
  if (task === undefined) {
    console.error(
      `Cannot run task "${name ?? ""}": the tasks are ${Object.keys(tasks).join(", ")}`,
    );
    return 2;
  }
  if (name !== "fmt") {
    try {
      const { note, env } = await decide();
      console.log(note);
      for (const [variable, value] of Object.entries(env)) Deno.env.set(variable, value);
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
      return 2;
    }
  }
  const command = [...task(moduleFlags()), ...args];
  const { code } = await run(Deno.execPath(), command, { cwd: new URL("../", import.meta.url) });
  return code;
}

if (import.meta.main) {
  const [name, ...args] = Deno.args;
  Deno.exit(await main(name, args));
}
