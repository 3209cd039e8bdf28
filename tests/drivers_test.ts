import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { DatabaseError } from "../core/errors.ts";
import type { SqliteDriver } from "../engines/sqlite/driver.ts";
import { loadDriver } from "../engines/sqlite/drivers.ts";
import { type FfiConnection, loadFfi } from "../engines/sqlite/drivers/ffi.ts";
import { nodeDriver } from "../engines/sqlite/drivers/node.ts";
import { driverSuite } from "./drivers/suite.ts";

// Deno's types know only the first of these.
const defaults = { open: true, readBigInts: true, returnArrays: true };
driverSuite(Deno.test, nodeDriver, (path) => new DatabaseSync(path, defaults));

const ffi: SqliteDriver | Error = await loadDriver("ffi").catch((error: Error) => error);
if (ffi instanceof Error) {
  const reason = ffi.cause instanceof Error ? ffi.cause.message : ffi.message;
  Deno.test({ name: `ffi driver: not loaded: ${reason}`, ignore: true, fn() {} });
} else {
  const { Database } = await import("@db/sqlite");
  driverSuite(Deno.test, await loadFfi(), (path): FfiConnection => new Database(path));
}

Deno.test("loadDriver() takes ffi where it loads, otherwise node", async () => {
  const driver = await loadDriver("auto");
  assertEquals(driver.name, ffi instanceof Error ? "node" : "ffi");
});

Deno.test("loadDriver() decides once per process", async () => {
  assertEquals(await loadDriver("auto"), await loadDriver("auto"));
});

Deno.test({
  name: "loadDriver() takes node without a prompt where FFI is not granted",
  permissions: { ffi: false, env: true, net: true, read: true, write: true },
  async fn() {
    const fresh = await import("../engines/sqlite/drivers.ts?without-ffi");
    assertEquals((await fresh.loadDriver("auto")).name, "node");
  },
});

Deno.test("loadDriver() names the driver that does not load, and the way out", () => {
  if (!(ffi instanceof Error)) return;
  assert(ffi instanceof DatabaseError);
  assertStringIncludes(ffi.message, 'Cannot load the SQLite driver "ffi"');
  assertStringIncludes(ffi.message, 'driver "node"');
  assert(ffi.cause instanceof Error);
});

Deno.test("loadDriver() passes a ready driver through", async () => {
  const driver = await loadDriver("node");
  assertEquals(await loadDriver(driver), driver);
});

Deno.test("loadDriver() refuses what is no choice", async () => {
  const choices: unknown[] = ["sqlite", "", undefined, null, 1, {}, DatabaseSync, class {}];
  for (const choice of choices) {
    // @ts-expect-error: what a JavaScript caller may pass
    await assertRejects(() => loadDriver(choice), TypeError, "Cannot load the SQLite driver");
  }
});
