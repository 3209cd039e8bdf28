/**
 * Finds or fetches a Node that runs the sources as they are, and the npm packages they import.
 *
 * Node strips types without being asked from version 24 on (and 22.18). An older machine gets the
 * binary from the npm registry. Deno fetches it, so that npm itself is not needed, and keeps it in
 * its cache; the tree has only links to it, in `.cache/node/`, which Git ignores.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import denoJson from "../deno.json" with { type: "json" };
import { run } from "./child.ts";

/** The major version of Node that is fetched, and the oldest one that is used as found. */
const major = 24;

/** The folder whose `node_modules` the Node tests see. */
const folder = new URL("../.cache/node/", import.meta.url);

/** Gives the path of a Node to run, after the packages of `deno.json` are installed for it. */
export async function prepareNode(): Promise<string> {
  const binary = await installedMajor() >= major ? undefined : binaryPackage();
  const dependencies = npmPackages();
  if (binary !== undefined) dependencies[binary] = String(major);

  await Deno.mkdir(folder, { recursive: true });
  const manifest = JSON.stringify({ private: true, dependencies }, null, 2) + "\n";
  await Deno.writeTextFile(new URL("package.json", folder), manifest);
  const install = ["install", "--quiet", "--no-lock"];
  const { code } = await run(Deno.execPath(), install, { cwd: folder });
  if (code !== 0) {
    const names = Object.keys(dependencies).join(", ");
    throw new Error(`Cannot prepare Node ${major}: ${names} did not install`);
  }
  if (binary === undefined) return "node";
  const file = Deno.build.os === "windows" ? "bin/node.exe" : "bin/node";
  return fileURLToPath(new URL(`node_modules/${binary}/${file}`, folder));
}

/** Tells the major version of the machine's own Node, 0 when it has none. */
async function installedMajor(): Promise<number> {
  try {
    const { stdout } = await new Deno.Command("node", { args: ["--version"] }).output();
    // Without a Node, Deno puts itself on the path under that name; it answers "deno 2.9.6".
    return Number(/^v(\d+)\./.exec(new TextDecoder().decode(stdout))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Lists the npm packages among the bare names of `deno.json`, each with its version range. */
function npmPackages(): Record<string, string> {
  const packages: Record<string, string> = {};
  for (const [name, target] of Object.entries(denoJson.imports)) {
    const range = target.startsWith(`npm:${name}@`) ? target.slice(`npm:${name}@`.length) : "";
    if (range) packages[name] = range;
  }
  return packages;
}

/** Names the npm package that carries Node's binary for this machine. */
function binaryPackage(): string {
  const systems: Partial<Record<typeof Deno.build.os, string>> = {
    darwin: "darwin",
    linux: "linux",
    windows: "win",
  };
  const system = systems[Deno.build.os];
  if (system === undefined) {
    throw new Error(
      `Cannot prepare Node ${major}: no binary for ${Deno.build.os}, install it first`,
    );
  }
  return `node-${system}-${Deno.build.arch === "aarch64" ? "arm64" : "x64"}`;
}
