/** The contract suite on the SQLite engine, with the drivers Node has. */

import Database from "better-sqlite3";
import { test } from "node:test";
import { contract } from "../contract/suite.ts";
import { sqliteHarness } from "../sqlite/harness.ts";

const register = (name: string, run: () => Promise<void>) => void test(name, run);

contract(sqliteHarness("node", "node", register));
contract(sqliteHarness(Database, "better-sqlite3", register));
