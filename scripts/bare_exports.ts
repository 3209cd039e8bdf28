/**
 * Names the exports whose documentation shows no example, and fails when there are any.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import denoJson from "../deno.json" with { type: "json" };
import { moduleFlags } from "./jsr.ts";

/** The part of the output of `deno doc --json` that is looked at. */
interface Documentation {
  readonly nodes: Readonly<Record<string, { readonly symbols: readonly Symbol[] }>>;
}

/** An exported name and the comments of its declarations. */
interface Symbol {
  readonly name: string;
  readonly declarations: readonly {
    readonly jsDoc?: { readonly tags?: readonly { readonly kind: string }[] };
  }[];
}

/** Reads the documentation of all entry points. */
async function readDocumentation(): Promise<Documentation> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["doc", "--json", ...moduleFlags(), ...Object.values(denoJson.exports)],
    cwd: fileURLToPath(new URL("../", import.meta.url)),
    stderr: "inherit",
  }).output();
  if (!success) throw new Error("deno doc failed");
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** Names what has no example, and gives the exit code. */
async function main(): Promise<number> {
  const { nodes } = await readDocumentation();
  const symbols = Object.values(nodes).flatMap((module) => module.symbols);
  const bare = symbols.filter(({ declarations }) =>
    !declarations.some(({ jsDoc }) => jsDoc?.tags?.some(({ kind }) => kind === "example"))
  );
  for (const { name } of bare) console.error(`No @example in the documentation of ${name}`);
  console.log(`${symbols.length} exports, ${bare.length} without an example`);
  return symbols.length > 0 && bare.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main());
