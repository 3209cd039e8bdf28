/** The contract suite on the SQLite engine, with each driver this runtime has. */

import { loadDriver } from "../engines/sqlite/drivers.ts";
import { contract } from "./contract/suite.ts";
import { sqliteHarness } from "./sqlite/harness.ts";

const register = (name: string, run: () => Promise<void>) => Deno.test(name, run);

contract(sqliteHarness("node", "node", register));

// Loaded here, not in a test: the sanitizers count a library that stays loaded as a leak.
const unavailable = await loadDriver("ffi").then(() => undefined, (error: Error) => error.message);
if (unavailable === undefined) contract(sqliteHarness("ffi", "ffi", register));
else Deno.test.ignore(`sqlite ffi: skipped, ${unavailable}`, () => {});
