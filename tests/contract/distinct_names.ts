import { assert, assertEquals } from "@std/assert";
import type { Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { soon } from "./wait.ts";

/** Names that became something else elsewhere (C12, C74), and pairs that are not the same. */
const NAMES: readonly string[] = [
  // Sizes: identifiers elsewhere end at 63 bytes, keys at 255.
  "n",
  "n".repeat(63),
  "n".repeat(64),
  "n".repeat(255),
  "n".repeat(1_000),
  "é".repeat(500),
  `${"日".repeat(333)}n`,
  "🎉".repeat(200),
  "🎉".repeat(250),
  // Case, normal forms and spaces: compared byte for byte.
  "Orders",
  "orders",
  "ORDERS",
  "a",
  "A",
  "a ",
  " a",
  "a b",
  "a\tb",
  "a\nb",
  "\u00e9",
  "e\u0301",
  "ß",
  "ss",
  "\u0130",
  "\ufeff",
  "\ufffd",
  "\u200b",
  "日本語",
  // Quoting, patterns, and words of SQL.
  'a"b',
  "a'b",
  "a''b",
  "a;drop",
  "a--b",
  "\\",
  "\\u0061",
  "%",
  "_",
  "*",
  "?1",
  "$1",
  ":a",
  "SELECT",
  "null",
  "NULL",
  "true",
  // What looks like a number is none.
  "1",
  "01",
  "1.0",
  "1e0",
  "-0",
  "0x1",
  // What an object or a topic may make of a name.
  "__proto__",
  "constructor",
  "channel:a",
  "queue:a",
  "outbox:a",
  "a:b",
  "[1]",
  '{"a":1}',
];

/** That every legal name works in every kind, and reaches nothing else. */
export function distinctNames(harness: Harness): void {
  testStore(harness, "a queue holds the jobs of its own name only", async (store) => {
    for (const name of NAMES) await store.queue(name).enqueue(name);
    for (const name of NAMES) {
      const jobs = await store.queue(name).claimBatch("worker", 10);
      assertEquals(jobs.map((job) => [job.queue, job.payload]), [[name, name]]);
    }
  });

  testStore(harness, "tx.enqueueTx() reaches the queue of that name only", async (store) => {
    await store.transaction(async (tx) => {
      for (const name of NAMES) await tx.enqueueTx(name, {}, name);
    });
    for (const name of NAMES) {
      const jobs = await store.queue(name).claimBatch("worker", 10);
      assertEquals(jobs.map((job) => job.payload), [name]);
    }
  });

  testStore(harness, "a stream holds the events of its own name only", async (store) => {
    for (const name of NAMES) await store.stream(name).publish(name);
    await store.transaction(async (tx) => {
      for (const name of NAMES) await tx.publishTx(name, `${name} again`);
    });
    for (const name of NAMES) {
      const events = await store.stream(name).readSince(0, 10);
      const seen = events.map((event) => [event.stream, event.payload]);
      assertEquals(seen, [[name, name], [name, `${name} again`]]);
    }
  });

  testStore(harness, "an outbox delivers the messages of its own name only", async (store) => {
    for (const name of NAMES) await store.outbox(name).enqueue(name);
    await store.transaction(async (tx) => {
      for (const name of NAMES) await tx.outboxEnqueueTx(name, {}, `${name} again`);
    });
    for (const name of NAMES) {
      const seen: unknown[] = [];
      while (await store.outbox(name).runOnce("worker", (payload) => seen.push(payload)));
      assertEquals(seen, [name, `${name} again`]);
    }
  });

  testStore(harness, "a lock excludes holders of its own name only", async (store) => {
    for (const name of NAMES) {
      const lock = await store.tryLock(name, name, 60_000);
      assertEquals([lock?.name, lock?.owner], [name, name]);
    }
    for (const name of NAMES) {
      assertEquals(await store.tryLock(name, "somebody", 60_000), undefined, name);
    }
  });

  testStore(harness, "a consumer has the offset of its own name only", async (store) => {
    const stream = store.stream("orders");
    const offsets = await stream.publishMany(NAMES.map((name) => ({ payload: name })));
    for (const [index, name] of NAMES.entries()) await stream.saveOffset(name, offsets[index]!);
    for (const [index, name] of NAMES.entries()) {
      assertEquals(await stream.getOffset(name), offsets[index], name);
    }
    const { consumers } = await stream.info();
    assertEquals(new Set(consumers.map(({ name }) => name)), new Set(NAMES));
    assertEquals(consumers.length, NAMES.length);
  });

  testStore(harness, "keys and workers come back byte for byte", async (store) => {
    const stream = store.stream("orders");
    await stream.publishMany(NAMES.map((key) => ({ key, payload: 0 })));
    const events = await stream.readSince(0, NAMES.length);
    assertEquals(events.map((event) => event.key), [...NAMES]);

    const queue = store.queue("jobs");
    await queue.enqueueMany(NAMES);
    const workers: unknown[] = [];
    for (const worker of NAMES) {
      const job = await queue.claimOne(worker);
      workers.push(job?.worker, (await queue.getJob(job?.id ?? 0))?.worker);
    }
    assertEquals(workers, NAMES.flatMap((name) => [name, name]));
  });

  for (const [order, channels] of [["", NAMES], [", backwards", NAMES.toReversed()]] as const) {
    testStore(harness, `a notify wakes the channel of that name only${order}`, async (store) => {
      await assertWakesOneByOne(store, channels, (name) => store.notify(name));
    });

    testStore(
      harness,
      `tx.notifyTx() wakes the channel of that name only${order}`,
      async (store) => {
        const notify = (name: string) => store.transaction((tx) => tx.notifyTx(name));
        await assertWakesOneByOne(store, channels, notify);
      },
    );

    testStore(
      harness,
      `a notify in a joined tx wakes the channel of that name only${order}`,
      async (store, database) => {
        await assertWakesOneByOne(store, channels, async (name) => {
          const foreign = await database.beginForeign();
          await (await store.joinTx(foreign.connection)).notifyTx(name);
          await foreign.commit();
          await foreign.close();
        });
      },
    );
  }

  testStore(harness, "kinds of name do not share what they name", async (store) => {
    await store.queue("same").enqueue("job");
    await store.stream("same").publish("event");
    await store.outbox("same").enqueue("message");
    assert(await store.tryLock("same", "owner", 60_000));
    const jobs = await store.queue("same").claimBatch("worker", 10);
    assertEquals(jobs.map((job) => job.payload), ["job"]);
    const events = await store.stream("same").readSince(0, 10);
    assertEquals(events.map((event) => event.payload), ["event"]);
    const delivered: unknown[] = [];
    while (await store.outbox("same").runOnce("worker", (payload) => delivered.push(payload)));
    assertEquals(delivered, ["message"]);
  });

  testStore(
    harness,
    "no queue of the caller's is the backing queue of an outbox",
    async (store) => {
      const id = await store.outbox("mail").enqueue("message");
      for (const name of ["mail", "outbox:mail", "_outbox:mail", "_alkstore_outbox:mail"]) {
        const queue = store.queue(name);
        assertEquals([await queue.claimOne("worker"), await queue.getJob(id)], [
          undefined,
          undefined,
        ]);
        assertEquals(await queue.cancel(id), false);
        assertEquals(await store.transaction((tx) => tx.cancelTx(name, id)), false);
      }
      assertEquals((await store.outbox("mail").getJob(id))?.state, "ready");
    },
  );

  testStore(harness, "a channel is not woken by a queue or stream of its name", async (store) => {
    const [same, other] = [await store.listen("same"), await store.listen("other")];
    await store.queue("same").enqueue(1);
    await store.stream("same").publish(1);
    await store.outbox("same").enqueue(1);
    await store.notify("other");
    assertEquals(await soon(other.recv()), { channel: "other" });
    assertEquals(same.tryRecv(), undefined);
  });
}

/** Notifies channel after channel: its own receiver wakes, none that was not notified yet. */
async function assertWakesOneByOne(
  store: Store<unknown>,
  channels: readonly string[],
  notify: (channel: string) => Promise<void>,
): Promise<void> {
  const waiting = new Map<string, Awaited<ReturnType<typeof store.listen>>>();
  for (const channel of channels) waiting.set(channel, await store.listen(channel));
  for (const channel of channels) {
    const receiver = waiting.get(channel);
    waiting.delete(channel);
    await notify(channel);
    assertEquals(await soon(receiver!.recv(), `a wake of ${channel}`), { channel });
    for (const [other, silent] of waiting) assertEquals(silent.tryRecv(), undefined, other);
  }
}
