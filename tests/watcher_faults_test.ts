/** How a watcher takes a busy, broken, lost or silent database file. */
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
} from "@std/assert";
import { delay } from "@std/async";
import { ClosedError, DatabaseError } from "../core/errors.ts";
import { nodeDriver } from "../engines/sqlite/drivers/node.ts";
import { FileEvents } from "../engines/sqlite/file_events.ts";
import { until } from "./contract/wait.ts";
import { Ear, nothing, Site, sql, tapped, wakeNumbers } from "./watcher/harness.ts";

Deno.test("the last notify is seen when the writer keeps others out of the file", async () => {
  await using site = new Site("delete");
  // No write-ahead log, no events of it.
  const watcher = site.watcher({ watchFiles: false, poll: { min: 1, max: 5 } });
  const peer = site.peer();
  const ear = new Ear(wakeNumbers(site.connect()));
  await watcher.watch("channel:a", ear);
  for (let last = 20; last <= 200; last += 20) {
    const notifies = Array.from({ length: 20 }, () => [
      "BEGIN EXCLUSIVE",
      sql.wake("channel:a"),
      Math.random() * 5,
      "COMMIT",
    ]);
    await peer.run(...notifies.flat());
    await ear.until(() => ear.seen === last);
  }
  assertEquals(site.events, []);
});

Deno.test("a busy database is looked at again, and what was committed meanwhile is not skipped", async () => {
  await using site = new Site();
  let opened = 0;
  let busyLooks = 0;
  const watcher = site.watcher({
    open: () => {
      opened++;
      return tapped(nodeDriver.open(site.path), (text) => {
        // After the look at the version, which has changed by then.
        if (text.includes("wake_floor") && busyLooks > 0) {
          busyLooks--;
          throw new Error("database is locked");
        }
      });
    },
    resultCode: () => 261, // SQLITE_BUSY_RECOVERY
  });
  const ear = new Ear();
  await watcher.watch("queue:a", ear);
  busyLooks = 10;
  site.connect().exec(sql.enqueue("a"));
  await ear.until(() => ear.wakes > 0);
  assertEquals(busyLooks, 0);
  assertEquals(opened, 1);
  assertEquals(site.events, []);
});

Deno.test("watch() waits for a file that others are kept out of", async () => {
  await using site = new Site("delete");
  const watcher = site.watcher({ watchFiles: false, poll: { min: 1, max: 5 } });
  const peer = site.peer();
  await peer.run("BEGIN EXCLUSIVE");
  const ear = new Ear();
  let isArmed = false;
  const arming = watcher.watch("queue:a", ear).then(() => isArmed = true);
  await peer.run(sql.enqueue("a"), 50);
  assert(!isArmed);
  await peer.run("COMMIT");
  await arming;
  await peer.run(sql.enqueue("a"));
  await ear.until(() => ear.wakes > 0);
});

for (const loss of ["replaced", "deleted"]) {
  Deno.test(`a ${loss} file ends the listeners, and watch() from then on`, async () => {
    await using site = new Site();
    const watcher = site.watcher();
    const ears = [new Ear(), new Ear()];
    for (const ear of ears) await watcher.watch("queue:a", ear);
    if (loss === "deleted") await Deno.remove(site.path);
    else {
      await Deno.writeTextFile(`${site.folder}/new.db`, "");
      await Deno.rename(`${site.folder}/new.db`, site.path);
    }
    // Nobody writes to it, but there is an event; Deno before 2.7 begins to hear them late.
    await delay(20);
    watcher.touch();
    for (const ear of ears) {
      await ear.until(() => ear.death !== undefined);
      assertInstanceOf(ear.death, DatabaseError);
      assertStringIncludes(ear.death.message, loss);
    }
    const error = await assertRejects(() => watcher.watch("queue:a", nothing), ClosedError);
    assertStrictEquals(error.cause, watcher.dead);
    assertStrictEquals(ears[0]?.death, watcher.dead);
    assertEquals(site.events.map((event) => event.type), ["error"]);
  });
}

Deno.test("a file that was replaced before anybody listened is refused", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  await Deno.copyFile(site.path, `${site.folder}/new.db`);
  await Deno.rename(`${site.folder}/new.db`, site.path);
  await assertRejects(() => watcher.watch("queue:a", nothing), ClosedError, "lost");
});

Deno.test("a replaced file is noticed by the safety poll where there are no file events", async () => {
  await using site = new Site();
  const watcher = site.watcher({ watchFiles: false, poll: { min: 5, max: 20 } });
  const ear = new Ear();
  await watcher.watch("queue:a", ear);
  await Deno.writeTextFile(`${site.folder}/new.db`, "");
  await Deno.rename(`${site.folder}/new.db`, site.path);
  await ear.until(() => ear.death !== undefined);
});

Deno.test("a file that cannot be read any more ends the listeners", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const ear = new Ear();
  await watcher.watch("queue:a", ear);
  site.connect().exec("DROP TABLE __alkstore_wakes");
  await ear.until(() => ear.death !== undefined);
  assertStringIncludes(String(watcher.dead?.message), "no such table");
  await assertRejects(() => watcher.watch("queue:a", nothing), ClosedError);
});

Deno.test("a connection that breaks is opened again, and everybody is woken", async () => {
  await using site = new Site();
  let opened = 0;
  let broken = 0;
  const watcher = site.watcher({
    open: () => {
      const number = ++opened;
      return tapped(nodeDriver.open(site.path), () => {
        if (broken === number) throw new Error("disk I/O error");
      });
    },
  });
  const other = site.connect();
  const queue = new Ear();
  const channel = new Ear();
  await watcher.watch("queue:a", queue);
  await watcher.watch("channel:never", channel);
  for (let breakage = 1; breakage <= 3; breakage++) {
    const woken = [queue.next(), channel.next()];
    broken = opened;
    other.exec(sql.enqueue("unheard"));
    await Promise.all(woken);
    assertEquals(opened, breakage + 1);
    assertEquals(site.events.length, breakage);
    // It is mended when it has read something.
    const told = queue.next();
    other.exec(sql.enqueue("a"));
    await told;
  }
  assertEquals(watcher.dead, undefined);
});

Deno.test("a connection that breaks again when it was just opened ends the listeners", async () => {
  await using site = new Site();
  let opened = 0;
  const watcher = site.watcher({
    open: () => {
      if (++opened > 1) throw new Error("disk I/O error");
      return tapped(nodeDriver.open(site.path), (text) => {
        if (text.includes("data_version") && isBroken) throw new Error("disk I/O error");
      });
    },
  });
  let isBroken = false;
  const ear = new Ear();
  await watcher.watch("queue:a", ear);
  isBroken = true;
  site.connect().exec(sql.enqueue("a"));
  await ear.until(() => ear.death !== undefined);
  assertEquals(opened, 2);
});

Deno.test("watch() rejects when no connection can be opened, and may be tried again", async () => {
  await using site = new Site();
  let failures = 2;
  const watcher = site.watcher({
    open: () => {
      if (failures-- > 0) throw new Error("unable to open database file");
      return nodeDriver.open(site.path);
    },
  });
  for (let attempt = 0; attempt < 2; attempt++) {
    await assertRejects(() => watcher.watch("queue:a", nothing), DatabaseError, "unable to open");
  }
  const ear = new Ear();
  await watcher.watch("queue:a", ear);
  site.connect().exec(sql.enqueue("a"));
  await ear.until(() => ear.wakes > 0);
});

Deno.test("file events that cannot be had are lost once, and restored when they can", async () => {
  const folder = await Deno.makeTempDir();
  const wal = `${folder}/app.db-wal`;
  const calls: string[] = [];
  const events = new FileEvents({
    path: `${folder}/app.db`,
    onWrite: () => calls.push("write"),
    onRename: () => calls.push("rename"),
    onLost: () => calls.push("lost"),
    onRestored: () => calls.push("restored"),
    retry: { first: 5, most: 20 },
  });
  events.start();
  await until(() => events.lostBecause, "the loss");
  await delay(50);
  await Deno.writeTextFile(wal, "");
  await until(() => calls.length > 1, "the second call");
  assertEquals(events.lostBecause, undefined);
  await Deno.writeTextFile(wal, "a");
  await until(() => calls.length > 2, "the third call");
  events.stop();
  await events.stopped();
  assertEquals(calls.slice(0, 3), ["lost", "restored", "write"]);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("file events follow the path when another file takes its place", async () => {
  const folder = await Deno.makeTempDir();
  const wal = `${folder}/app.db-wal`;
  await Deno.writeTextFile(wal, "");
  const calls: string[] = [];
  const events = new FileEvents({
    path: `${folder}/app.db`,
    onWrite: () => calls.push("write"),
    onRename: () => calls.push("rename"),
    onLost: () => calls.push("lost"),
    onRestored: () => calls.push("restored"),
  });
  events.start();
  await delay(20); // Deno before 2.7 begins late.
  await Deno.writeTextFile(`${folder}/new`, "");
  await Deno.rename(`${folder}/new`, wal);
  await until(() => calls.includes("rename"), "the rename");
  await delay(20);
  calls.length = 0;
  await Deno.writeTextFile(wal, "a");
  await until(() => calls.includes("write"), "the write");
  events.stop();
  await events.stopped();
  assert(!calls.includes("lost"));
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a process that may not watch the file says so once, and polls", async () => {
  await using site = new Site();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--no-check",
      `--allow-read=${site.path}`,
      `--allow-write=${site.path}`,
      import.meta.resolve("./watcher/unprivileged.ts"),
      site.path,
    ],
    stdout: "piped",
  }).spawn();
  let output = "";
  const reading = child.stdout.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({ write: (text) => void (output += text) }),
  );
  await until(() => output.includes("poll"), "the start of the other process");
  site.connect().exec(sql.enqueue("a"));
  await reading;
  await child.status;
  assertEquals(output, "degraded\npoll\nwake\n");
});
