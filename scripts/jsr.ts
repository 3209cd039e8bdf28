/**
 * Decides how this run gets the packages that live on JSR.
 *
 * Some machines reach the npm registry but not JSR. There, an import map sends the bare names of
 * `deno.json` to the stand-ins in `scripts/offline/`. The decision is made once, by
 * {@linkcode decide}, and handed on in two variables:
 *
 * - `ALKSTORE_JSR`: `on` or `off`. Set by hand, it is the decision, and nothing is asked.
 * - `ALKSTORE_IMPORT_MAP`: the import map to use. Set by hand, that map is used as it is.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import denoJson from "../deno.json" with { type: "json" };
import { standIns } from "./offline/stand_ins.ts";

/** Where the packages come from in this run. */
export interface Decision {
  /** One line for the person who started the run. */
  readonly note: string;
  /** Variables that hand the decision on to child processes. */
  readonly env: Readonly<Record<string, string>>;
}

/** Milliseconds that JSR has to answer. */
const patience = 1_500;

/** Decides where the packages come from; asks JSR only when no variable says it. */
export async function decide(): Promise<Decision> {
  const map = Deno.env.get("ALKSTORE_IMPORT_MAP");
  if (map) {
    const file = await Deno.realPath(map);
    return { note: `JSR: not asked, ${file} maps the imports`, env: { ALKSTORE_IMPORT_MAP: file } };
  }
  const said = Deno.env.get("ALKSTORE_JSR");
  if (said && said !== "on" && said !== "off") {
    throw new TypeError(`Cannot decide about JSR: ALKSTORE_JSR is "${said}", not "on" or "off"`);
  }
  const isOn = said ? said === "on" : await answers();
  const why = said ? `${said} by ALKSTORE_JSR` : isOn ? "it answers" : "it does not answer";
  if (isOn) {
    return { note: `JSR: ${why}, packages come from there`, env: { ALKSTORE_JSR: "on" } };
  }
  return {
    note: `JSR: ${why}, ${Object.keys(standIns).join(" and ")} come from scripts/offline/`,
    env: { ALKSTORE_JSR: "off", ALKSTORE_IMPORT_MAP: await writeImportMap() },
  };
}

/** Gives the flags that make a `deno` command which loads modules follow the decision. */
export function moduleFlags(): string[] {
  const map = Deno.env.get("ALKSTORE_IMPORT_MAP");
  const flags = map ? [`--import-map=${map}`] : [];
  // Without it each command would try JSR again for the dynamic imports, and wait where a
  // firewall swallows the packets. npm packages still load.
  if (Deno.env.get("ALKSTORE_JSR") === "off") flags.push("--no-remote");
  return flags;
}

/** Tells whether JSR answers Deno itself, with its proxies, certificates and settings. */
async function answers(): Promise<boolean> {
  const asking = new Deno.Command(Deno.execPath(), {
    args: [
      "cache",
      "--quiet",
      "--no-config",
      "--no-lock",
      "--reload",
      // One small module: its package's list of versions, one manifest, one file.
      `${denoJson.imports["@std/async"]}/delay`,
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
    signal: AbortSignal.timeout(patience),
  });
  return (await asking.output()).success;
}

/** Writes the bare names of `deno.json`, with the stand-ins in place, and gives the file's path. */
async function writeImportMap(): Promise<string> {
  const root = new URL("../", import.meta.url);
  const imports: Record<string, string> = {};
  for (const [name, target] of Object.entries(denoJson.imports)) {
    imports[name] = target.startsWith(".") ? new URL(target, root).href : target;
  }
  const text = JSON.stringify({ imports: { ...imports, ...standIns } }, null, 2) + "\n";

  const folder = fileURLToPath(new URL(".cache/", root));
  await Deno.mkdir(folder, { recursive: true });
  // Renamed into place: another task may be reading the old one.
  const draft = await Deno.makeTempFile({ dir: folder });
  await Deno.writeTextFile(draft, text);
  const file = `${folder}import_map.json`;
  await Deno.rename(draft, file);
  return file;
}
