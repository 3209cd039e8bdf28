/**
 * Teaches Node the bare names of `deno.json`: loaded with `--import` before a test file.
 *
 * The library's own name leads to its sources, a JSR package to its stand-in, an npm package to
 * what `scripts/node.ts` installed.
 *
 * @module
 */

import { registerHooks } from "node:module";
import denoJson from "../deno.json" with { type: "json" };
import { standIns } from "./offline/stand_ins.ts";

const root = new URL("../", import.meta.url);

/** The module as whose import an npm package is looked up. */
const npmParent = new URL(".cache/node/package.json", root).href;

const files = new Map<string, string>(Object.entries(standIns));
for (const [subpath, file] of Object.entries(denoJson.exports)) {
  files.set(denoJson.name + subpath.slice(1), new URL(file, root).href);
}

const npmNames = Object.entries(denoJson.imports)
  .filter(([, target]) => target.startsWith("npm:"))
  .map(([name]) => name);

registerHooks({
  resolve(specifier, context, nextResolve) {
    const file = files.get(specifier);
    if (file !== undefined) return nextResolve(file, context);
    const isOurs = npmNames.some((name) => specifier === name || specifier.startsWith(`${name}/`));
    const isFromHere = context.parentURL?.startsWith(root.href) === true &&
      !context.parentURL.includes("/node_modules/");
    return nextResolve(
      specifier,
      isOurs && isFromHere ? { ...context, parentURL: npmParent } : context,
    );
  },
});
