/**
 * Names the packages that have a stand-in here, for machines that JSR does not answer.
 *
 * A stand-in offers the functions that this project uses of its package, with the same signatures
 * and semantics, written on what Deno and Node bring along.
 *
 * @module
 */

/** The file that stands in for each package. */
export const standIns: Readonly<Record<string, string>> = {
  "@std/assert": new URL("./assert.ts", import.meta.url).href,
  "@std/async": new URL("./async.ts", import.meta.url).href,
};
