/** What a watcher tells, and whom. */
import { assertEquals, assertStrictEquals } from "@std/assert";
import { delay } from "@std/async";
import type { Topic } from "../core/engine.ts";
import type { SqliteDatabase } from "../engines/sqlite/driver.ts";
import { nodeDriver } from "../engines/sqlite/drivers/node.ts";
import { Rechecks } from "../engines/sqlite/rechecks.ts";
import { until } from "./contract/wait.ts";
import { Ear, enqueued, nothing, Site, sql, tapped, wakeNumbers } from "./watcher/harness.ts";

for (const durability of ["FULL", "NORMAL"]) {
  Deno.test(`a commit of another process under ${durability} wakes its topic and no other`, async () => {
    await using site = new Site();
    const watcher = site.watcher();
    const peer = site.peer();
    await peer.run(`PRAGMA synchronous = ${durability}`);
    const topics: Topic[] = ["queue:a", "queue:b", "stream:a", "stream:b", "channel:a", "claims:a"];
    const ears = new Map(topics.map((topic) => [topic, new Ear()]));
    for (const [topic, ear] of ears) await watcher.watch(topic, ear);
    const commits: [Topic, string][] = [
      ["queue:a", sql.enqueue("a")],
      ["queue:b", sql.wake("queue:b")],
      ["stream:a", sql.publish("a")],
      ["channel:a", sql.wake("channel:a")],
      ["claims:a", sql.wake("claims:a")],
    ];
    for (const [topic, commit] of commits) {
      const before = new Map(topics.map((each) => [each, ears.get(each)?.wakes]));
      const woken = ears.get(topic)?.next();
      await peer.run(commit);
      await woken;
      const others = topics.filter((other) => other !== topic);
      for (const other of others) assertEquals(ears.get(other)?.wakes, before.get(other), other);
    }
  });
}

Deno.test("a commit right after watch() has resolved is not missed", async () => {
  await using site = new Site();
  const other = site.connect();
  for (let round = 0; round < 30; round++) {
    const watcher = site.watcher();
    const ear = new Ear();
    await watcher.watch("queue:a", ear);
    other.exec(sql.enqueue("a"));
    await ear.until(() => ear.wakes > 0);
    await watcher.close();
  }
});

Deno.test("the last of many commits at random moments is always seen", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const peer = site.peer();
  const ear = new Ear(wakeNumbers(site.connect()));
  await watcher.watch("channel:a", ear);
  // FULL and no touch: each file event comes an fsync before its commit.
  await peer.run("PRAGMA synchronous = FULL");
  for (let last = 5; last <= 500; last += 5) {
    const pauses = Array.from({ length: 4 }, () => Math.random() < 0.5 ? 0 : Math.random() * 10);
    const commits = pauses.flatMap((pause) => [sql.wake("channel:a"), pause]);
    await peer.run(...commits, sql.wake("channel:a"));
    await ear.until(() => ear.seen === last);
  }
});

Deno.test("nothing is missed when commits come in a rush and then singly again", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const peer = site.peer();
  const ear = new Ear(wakeNumbers(site.connect()));
  await watcher.watch("channel:a", ear);
  const rush = new Array(2_000).fill(sql.wake("channel:a"));
  for (let last = 0; last < 4_000;) {
    await peer.run("PRAGMA synchronous = NORMAL", ...rush);
    last += rush.length;
    await ear.until(() => ear.seen === last);
    // Some come while it turns back to file events, some when the last re-check is long over.
    for (let commit = 0; commit < 10; commit++) {
      await peer.run(commit < 9 ? Math.random() * 30 : 1_500, sql.wake("channel:a"));
      last++;
      await ear.until(() => ear.seen === last);
    }
  }
});

Deno.test("looks go on after one that found something, which may have been an earlier commit", async () => {
  let looks = 0;
  const rechecks = new Rechecks(() => ++looks === 1 ? "changed" : "same", () => {});
  rechecks.kick();
  await until(() => looks >= 3, "the third look");
  rechecks.stop();
});

Deno.test("a rush is looked at without events, and for a while after it too", async () => {
  const paces: boolean[] = [];
  let looks = 0;
  let isRushing = true;
  const rechecks = new Rechecks(() => {
    looks++;
    return isRushing ? "changed" : "same";
  }, (isSteady) => {
    paces.push(isSteady);
    looks = 0;
  });
  while (paces.length === 0) {
    for (let event = 0; event < 100; event++) rechecks.kick();
    await delay(1);
  }
  await until(() => looks >= 10, "the tenth look without an event");
  isRushing = false;
  await until(() => paces.length === 2 && looks > 0, "a look after the rush");
  assertEquals(paces, [true, false]);
  rechecks.stop();
});

Deno.test("committed() wakes at once, and the loop does not wake again", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const writer = site.connect();
  const peer = site.peer();
  const ear = new Ear();
  const fence = new Ear();
  await watcher.watch("queue:a", ear);
  await watcher.watch("channel:fence", fence);
  for (let id = 1; id <= 20; id++) {
    writer.exec(sql.enqueue("a"));
    watcher.committed(enqueued("a", id));
    assertEquals(ear.wakes, id);
    // The loop has read all that was committed before what it tells.
    const told = fence.next();
    await peer.run(sql.wake("channel:fence"));
    await told;
    assertEquals(ear.wakes, id);
  }
});

Deno.test("committed() does not hide what another connection has committed before", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const writer = site.connect();
  const other = site.connect();
  const ear = new Ear();
  await watcher.watch("queue:other", ear);
  other.exec(sql.enqueue("other"));
  writer.exec(sql.enqueue("own"));
  watcher.committed(enqueued("own", 2));
  await ear.until(() => ear.wakes > 0);
});

Deno.test("committed() wakes nobody else, and works while nobody listens", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  watcher.committed(enqueued("a", 1));
  const ear = new Ear();
  const unwatch = await watcher.watch("queue:b", ear);
  watcher.committed(enqueued("a", 2));
  unwatch();
  watcher.committed(enqueued("b", 3));
  assertEquals(ear.wakes, 0);
});

Deno.test("a change without a topic wakes who waits for deadlines", async () => {
  await using site = new Site();
  const other = site.connect();
  other.exec(sql.enqueue("a"));
  const ear = new Ear();
  await site.watcher().watch("deadlines:", ear);
  other.exec("UPDATE __alkstore_jobs SET run_at = run_at + 1");
  await ear.until(() => ear.wakes > 0);
});

Deno.test("wakes that were pruned unseen wake everybody", async () => {
  await using site = new Site();
  const other = site.connect();
  const ears = [new Ear(), new Ear()];
  const watcher = site.watcher();
  for (const [index, ear] of ears.entries()) await watcher.watch(`channel:${index}`, ear);
  other.exec(`
    BEGIN;
    ${sql.wake("channel:a")};
    DELETE FROM __alkstore_wakes;
    INSERT INTO __alkstore_meta (key, value) VALUES ('wake_floor', 1);
    COMMIT`);
  for (const ear of ears) await ear.until(() => ear.wakes > 0);
});

Deno.test("wakes that were pruned before watch() wake nobody", async () => {
  await using site = new Site();
  const other = site.connect();
  other.exec("INSERT INTO __alkstore_meta (key, value) VALUES ('wake_floor', 7)");
  const ear = new Ear();
  const fence = new Ear();
  const watcher = site.watcher();
  await watcher.watch("channel:a", ear);
  await watcher.watch("queue:fence", fence);
  other.exec(sql.enqueue("fence"));
  await fence.until(() => fence.wakes > 0);
  assertEquals(ear.wakes, 0);
});

Deno.test("without file events the poll finds commits, and channels wake at every interval", async () => {
  await using site = new Site();
  const watcher = site.watcher({ watchFiles: false, poll: { min: 5, max: 60_000 } });
  assertEquals(watcher.mode, "poll");
  assertEquals(watcher.reason, "file events are turned off");
  const channel = new Ear();
  const queue = new Ear();
  await watcher.watch("channel:a", channel);
  await watcher.watch("queue:a", queue);
  await channel.until(() => channel.wakes >= 3);
  assertEquals(queue.wakes, 0);
  const peer = site.peer();
  await peer.run(sql.enqueue("a"));
  await queue.until(() => queue.wakes > 0);
});

/** Counts how often a watcher asks whether something has changed. */
function countLooks(site: Site): { open: () => SqliteDatabase; readonly count: number } {
  let count = 0;
  return {
    open: () =>
      tapped(nodeDriver.open(site.path), (text) => {
        if (text.includes("data_version")) count++;
      }),
    get count() {
      return count;
    },
  };
}

Deno.test("behind file events the poll looks and leaves channels alone", async () => {
  await using site = new Site();
  const looks = countLooks(site);
  const watcher = site.watcher({ open: looks.open, poll: { min: 1, max: 5 } });
  const ear = new Ear();
  await watcher.watch("channel:a", ear);
  await until(() => looks.count > 20, "the twentieth look");
  assertEquals(watcher.mode, "push");
  assertEquals(watcher.reason, undefined);
  assertEquals(ear.wakes, 0);
});

Deno.test("behind file events the poll waits for its longest pause", async () => {
  await using site = new Site();
  const looks = countLooks(site);
  const watcher = site.watcher({ open: looks.open, poll: { min: 1, max: 60_000 } });
  await watcher.watch("channel:a", nothing);
  // The series of looks that follows the start.
  await until(() => looks.count === 8, "the eighth look");
  await delay(400);
  assertEquals(looks.count, 8);
});

Deno.test("a listener that throws is reported and takes nothing from the others", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const mistake = new Error("mine");
  await watcher.watch("queue:a", {
    wake: () => {
      throw mistake;
    },
    end: () => {},
  });
  const ear = new Ear();
  await watcher.watch("queue:a", ear);
  const other = site.connect();
  for (let round = 1; round <= 2; round++) {
    other.exec(sql.enqueue("a"));
    await ear.until(() => ear.wakes >= round);
  }
  assertStrictEquals(site.events[0]?.type, "error");
  assertStrictEquals(site.events[0]?.error, mistake);
  watcher.committed(enqueued("a", 3));
});

Deno.test("a listener may remove others and itself, and add one, while it is called", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const late = new Ear();
  const removed = new Ear();
  const adding = Promise.withResolvers<() => void>();
  const unwatchSelf = await watcher.watch("queue:a", {
    wake: () => {
      unwatchSelf();
      unwatchRemoved();
      adding.resolve(watcher.watch("queue:a", late));
    },
    end: () => {},
  });
  const unwatchRemoved = await watcher.watch("queue:a", removed);
  const other = site.connect();
  other.exec(sql.enqueue("a"));
  await adding.promise;
  other.exec(sql.enqueue("a"));
  await late.until(() => late.wakes > 0);
  assertEquals(removed.wakes, 0);
});

Deno.test("one listener may be on a topic twice, and removed once", async () => {
  await using site = new Site();
  const watcher = site.watcher();
  const ear = new Ear();
  const unwatch = await watcher.watch("queue:a", ear);
  await watcher.watch("queue:a", ear);
  unwatch();
  unwatch();
  watcher.committed(enqueued("a", 1));
  assertEquals(ear.wakes, 1);
});
