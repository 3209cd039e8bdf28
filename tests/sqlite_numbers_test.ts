/** Ids and offsets where JavaScript's numbers end: exact up to 2^53 - 1, never rounded above. */

import { assertEquals, assertRejects } from "@std/assert";
import { mkdtemp, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "../engines/sqlite.ts";
import { DatabaseError, type Store } from "../mod.ts";

const LAST = Number.MAX_SAFE_INTEGER;

/** A call that draws at least one number. */
type Draw = (store: Store<unknown>) => Promise<unknown>;

const DRAWS: Readonly<Record<string, Draw>> = {
  "queue.enqueue()": (store) => store.queue("jobs").enqueue("late"),
  "queue.enqueueMany()": (store) => store.queue("jobs").enqueueMany(["late", "later"]),
  "outbox.enqueue()": (store) => store.outbox("mail").enqueue("late"),
  "stream.publish()": (store) => store.stream("orders").publish("late"),
  "stream.publishMany()": (store) =>
    store.stream("orders").publishMany([{ payload: "late" }, { payload: "later" }]),
  "tx.enqueueTx()": (store) => store.transaction((tx) => tx.enqueueTx("jobs", {}, "late")),
  "tx.publishTx()": (store) => store.transaction((tx) => tx.publishTx("orders", "late")),
};

/** Runs `work` on a store whose counters stand at `drawn`. */
async function withCounters(
  drawn: number,
  work: (store: Store<unknown>, file: DatabaseSync) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "alkstore-numbers-"));
  const path = join(folder, "app.db");
  const store = await openSqlite<unknown>(path, { driver: "node" });
  const file = new DatabaseSync(path);
  try {
    await store.queue("jobs").enqueue("first");
    await store.stream("orders").publish("first");
    file.prepare("UPDATE sqlite_sequence SET seq = ?").run(drawn);
    await work(store, file);
  } finally {
    file.close();
    await store.close();
    await rm(folder, { recursive: true });
  }
}

Deno.test("the largest id and offset are drawn and found exactly", async () => {
  await withCounters(LAST - 2, async (store) => {
    const [queue, stream] = [store.queue("jobs"), store.stream("orders")];
    assertEquals(await queue.enqueueMany(["a", "b"]), [LAST - 1, LAST]);
    assertEquals(await stream.publishMany([{ payload: "a" }, { payload: "b" }]), [LAST - 1, LAST]);
    assertEquals((await queue.getJob(LAST))?.payload, "b");
    const jobs = await queue.claimBatch("worker", 10);
    assertEquals(jobs.map(({ id, payload }) => [id, payload]).slice(1), [
      [LAST - 1, "a"],
      [LAST, "b"],
    ]);
    assertEquals(await jobs.at(-1)?.ack(), true);
    const events = await stream.readSince(LAST - 1, 10);
    assertEquals(events.map(({ offset, payload }) => [offset, payload]), [[LAST, "b"]]);
    assertEquals(await stream.saveOffset("billing", LAST), true);
    assertEquals([await stream.getOffset("billing"), (await stream.info()).head], [LAST, LAST]);
  });
});

for (const [call, draw] of Object.entries(DRAWS)) {
  Deno.test(`${call} rejects above 2^53 - 1, and writes nothing`, async () => {
    await withCounters(LAST, async (store, file) => {
      const count = () =>
        file.prepare(
          `SELECT (SELECT count(*) FROM __alkstore_jobs) AS jobs,
                  (SELECT count(*) FROM __alkstore_events) AS events`,
        ).get();
      const before = count();
      const error = await assertRejects(() => draw(store), DatabaseError);
      assertEquals([error.retryable, error.outcome], [false, "not-applied"]);
      assertEquals(count(), before);
      // What was there before is as good as ever.
      assertEquals((await store.queue("jobs").claimOne("worker"))?.payload, "first");
      assertEquals((await store.stream("orders").readSince(0, 1))[0]?.payload, "first");
    });
  });
}
