/**
 * Shows the main job across processes: `deno task demo [--engine sqlite] [--orders 1000] [--keep]`.
 *
 * A producer takes orders and writes each with a mail, an invoice and an event in one transaction.
 * Two workers, woken through the database, send and project them; one is killed in the middle. In
 * the end everything is counted. The exit code is 0 only if every check holds.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { checkFacts } from "./demo/checks.ts";
import { ORDERS } from "./demo/order.ts";
import { formatReport } from "./demo/report.ts";
import { Run } from "./demo/run.ts";
import { type EngineName, engineNames, isEngineName } from "./demo/shop.ts";

const usage = `Usage: deno task demo [options]

  --engine <name>  ${engineNames.join(" or ")} (default: sqlite)
  --orders <n>     how many orders are taken, 50 to ${ORDERS} (default: ${ORDERS})
  --keep           keep the temporary folder with the database, and print its path
  --help           print this`;

/** Fewer would leave nothing to do when the worker is killed. */
const LEAST_ORDERS = 50;

/** Milliseconds after which the demo ends, come what may. */
const LIMIT = 28_000;

/** The signals that end the demo, with the exit code each of them leaves. */
const endings: ReadonlyArray<readonly [Deno.Signal, number]> = Deno.build.os === "windows"
  ? [["SIGINT", 130]]
  : [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]];

/** What the arguments ask for. */
interface Request {
  readonly engine: EngineName;
  readonly count: number;
  readonly isKept: boolean;
  readonly wantsHelp: boolean;
}

/** Reads the arguments; throws what is wrong with them. */
function readArguments(args: readonly string[]): Request {
  const { values } = parseArgs({
    args: [...args],
    options: {
      engine: { type: "string", default: "sqlite" },
      orders: { type: "string", default: String(ORDERS) },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { engine, orders, keep, help } = values;
  if (!isEngineName(engine)) {
    throw new TypeError(
      `Cannot run the demo: --engine must be ${engineNames.join(" or ")}, not "${engine}"`,
    );
  }
  const count = Number(orders);
  if (!Number.isInteger(count) || count < LEAST_ORDERS || count > ORDERS) {
    throw new RangeError(
      `Cannot run the demo: --orders must be ${LEAST_ORDERS} to ${ORDERS}, not "${orders}"`,
    );
  }
  return { engine, count, isKept: keep, wantsHelp: help };
}

/** Runs the demo in a folder of its own, and exits. */
async function show({ engine, count, isKept }: Request): Promise<never> {
  const startedAt = performance.now();
  const folder = await Deno.makeTempDir({ prefix: "alkstore_demo_" });
  const run = new Run({ engine, folder, isDurable: true }, count);
  let isEnding = false;
  // The first one to end it has its way.
  const end = async (code: number): Promise<never> => {
    if (isEnding) return await new Promise<never>(() => {});
    isEnding = true;
    await run.abort();
    if (isKept) console.log(`Kept: ${folder}`);
    else await Deno.remove(folder, { recursive: true }).catch((error) => console.error(error));
    Deno.exit(code);
  };
  for (const [signal, code] of endings) Deno.addSignalListener(signal, () => void end(code));
  setTimeout(() => {
    console.error(`\nThe demo FAILED: it did not end within ${LIMIT / 1_000} s`);
    void end(1);
  }, LIMIT);

  console.log(`alkstore demo: ${count} orders, 1 producer and 2 workers, engine ${engine}`);
  let isGood = false;
  try {
    const facts = await run.play();
    const checks = checkFacts(facts);
    console.log(formatReport(facts, checks));
    const failed = checks.filter(({ holds }) => !holds).length;
    const verdict = failed === 0 ? "checks hold" : `checks, ${failed} FAILED`;
    const seconds = (performance.now() - startedAt) / 1_000;
    console.log(`${checks.length} ${verdict}, after ${seconds.toFixed(1)} s`);
    isGood = failed === 0;
  } catch (error) {
    // Killed processes are no news.
    if (!isEnding) console.error("\nThe demo FAILED:", error);
  }
  return await end(isGood ? 0 : 1);
}

/** Runs the demo, or gives the exit code of not running it. */
async function main(args: readonly string[]): Promise<number> {
  let request: Request;
  try {
    request = readArguments(args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${usage}`);
    return 2;
  }
  if (!request.wantsHelp) return await show(request);
  console.log(usage);
  return 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
