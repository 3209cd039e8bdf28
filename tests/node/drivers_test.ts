import { assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { DatabaseError } from "../../core/errors.ts";
import { loadDriver } from "../../engines/sqlite/drivers.ts";
import { betterSqlite3 } from "../../engines/sqlite/drivers/better_sqlite3.ts";
import { nodeDriver } from "../../engines/sqlite/drivers/node.ts";
import { driverSuite } from "../drivers/suite.ts";

const register = (name: string, body: () => void) => void test(name, body);

// Node 22 knows only the first of these.
const defaults = { open: true, readBigInts: true, returnArrays: true };
driverSuite(register, nodeDriver, (path) => new DatabaseSync(path, defaults));

const BetterSqlite3 = await import("better-sqlite3").then((module) => module.default, String);
if (typeof BetterSqlite3 === "string") {
  test(`better-sqlite3 driver: not loaded: ${BetterSqlite3}`, { skip: true });
} else {
  driverSuite(
    register,
    betterSqlite3(BetterSqlite3),
    (path) => new BetterSqlite3(path).defaultSafeIntegers(),
  );

  test("loadDriver() takes the constructor of better-sqlite3", async () => {
    assertEquals((await loadDriver(BetterSqlite3)).name, "better-sqlite3");
  });
}

test("loadDriver() takes node where there is no Deno", async () => {
  assertEquals((await loadDriver("auto")).name, "node");
  await assertRejects(
    () => loadDriver("ffi"),
    DatabaseError,
    'Cannot load the SQLite driver "ffi"',
  );
});
