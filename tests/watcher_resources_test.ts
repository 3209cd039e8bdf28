/** What a watcher opens, closes and leaves alone. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { delay } from "@std/async";
import { ClosedError } from "../core/errors.ts";
import { until } from "./contract/wait.ts";
import { Ear, enqueued, nothing, Site, sql } from "./watcher/harness.ts";

Deno.test("close() in the middle of a wake silences the listeners", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const closing = Promise.withResolvers<void>();
  const ear = new Ear();
  await watcher.watch("queue:a", { wake: () => closing.resolve(watcher.close()), end: () => {} });
  await watcher.watch("queue:a", ear);
  site.connect().exec(sql.enqueue("a"));
  await closing.promise;
  watcher.committed(enqueued("a", 2));
  assertEquals([ear.wakes, ear.death], [0, undefined]);
  await watcher.close();
  await assertRejects(() => watcher.watch("queue:a", nothing), ClosedError, "closed");
});

Deno.test("close() ends a watch() that is still waiting", async () => {
  await using site = new Site();
  const watcher = site.watcher({
    open: () => {
      throw new Error("database is locked");
    },
    resultCode: () => 5, // SQLITE_BUSY
  });
  const refusal = assertRejects(() => watcher.watch("queue:a", nothing), ClosedError, "closed");
  await watcher.close();
  await refusal;
});

/** How many connections and file watches this process has open, where the system tells. */
function openHandles(): number {
  if (Deno.build.os !== "linux") return 0;
  const handles = [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => {
    try {
      return Deno.readLinkSync(`/proc/self/fd/${name}`);
    } catch {
      return ""; // That of the listing itself.
    }
  });
  return handles.filter((file) => file.endsWith("app.db-wal") || file.includes("inotify")).length;
}

Deno.test("the loop ends with its last listener and starts again with the next", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const other = site.connect();
  other.exec(sql.enqueue("a"));
  const before = openHandles();
  for (let round = 0; round < 3; round++) {
    const ear = new Ear();
    const unwatch = await watcher.watch("queue:a", ear);
    const unwatchOther = await watcher.watch("queue:b", nothing);
    unwatchOther();
    other.exec(sql.enqueue("a"));
    await ear.until(() => ear.wakes > 0);
    unwatch();
    await until(() => openHandles() === before, "the end of the loop");
  }
});

Deno.test("opened and closed two hundred times, watchers leave nothing behind", async () => {
  await using site = new Site();
  site.connect().exec(sql.enqueue("a"));
  const before = openHandles();
  for (let round = 0; round < 200; round++) {
    const watcher = site.watcher({ poll: { min: 50, max: 10_000 } });
    const unwatch = await watcher.watch("queue:a", nothing);
    if (round % 2 === 0) unwatch();
    watcher.touch();
    await watcher.close();
  }
  // Deno 2.8 closes the last one on a thread of its own.
  await until(() => openHandles() === before, "the end of the last watch");
});

/** The locks this process has on a file, where the system tells. */
function locksOn(path: string): number {
  const { ino } = Deno.statSync(path);
  const lines = Deno.readTextFileSync("/proc/locks").split("\n");
  return lines.filter((line) => line.includes(` ${Deno.pid} `) && line.includes(`:${ino} `)).length;
}

Deno.test("opening, watching and closing drop no lock of another connection", async () => {
  await using site = new Site();
  const writer = site.connect();
  const peer = site.peer();
  await peer.run("PRAGMA busy_timeout = 0");
  const files = [site.path, `${site.path}-shm`, `${site.path}-wal`];
  const watcher = site.watcher({ poll: { min: 1, max: 5 } });
  const ear = new Ear();
  await watcher.watch("channel:a", ear);
  writer.exec("BEGIN IMMEDIATE");
  writer.exec(sql.wake("channel:a"));
  // All that can cause events of the three files: a checkpoint, and another time.
  await peer.run("PRAGMA wal_checkpoint");
  for (const file of files) await Deno.utime(file, 0, 0);
  watcher.touch();
  await delay(50);
  await assertRejects(() => peer.run(sql.wake("channel:b")), Error, "locked");
  await watcher.close();
  await assertRejects(() => peer.run(sql.wake("channel:b")), Error, "locked");
  await assertRejects(() => peer.run("PRAGMA journal_mode = DELETE"), Error, "locked");
  if (Deno.build.os === "linux") {
    for (const file of files.slice(0, 2)) assert(locksOn(file) > 0, file);
  }
  writer.exec("COMMIT");
  await peer.run(sql.wake("channel:b"));
});

Deno.test("touch() makes a file event, and nothing where there is no file", async () => {
  await using site = new Site();
  site.connect().exec(sql.enqueue("a"));
  const wal = `${site.path}-wal`;
  const watcher = site.watcher();
  for (let round = 0; round < 3; round++) {
    await Deno.utime(wal, 0, 0);
    // The second comes while the first is in flight, and speaks for what came after it.
    watcher.touch();
    watcher.touch();
    await until(() => (Deno.statSync(wal).mtime?.getTime() ?? 0) > 0, "the touch");
  }
});

Deno.test("touch() fails nobody where there is no file to touch", async () => {
  await using site = new Site("delete");
  const watcher = site.watcher();
  watcher.touch();
  await delay(20);
  await watcher.close();
  watcher.touch();
  await delay(20);
});
