import { assert, assertEquals } from "@std/assert";
import type { Json, Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { soon } from "./wait.ts";

/** A way of a payload through the store. */
interface Way {
  readonly name: string;
  /** Sends the payload and gives what every reader of this way gets. */
  readonly carry: (store: Store<unknown>, payload: Json) => Promise<unknown[]>;
}

const WAYS: readonly Way[] = [
  {
    name: "queue.enqueue()",
    carry: async (store, payload) => {
      await store.queue("jobs").enqueue(payload);
      return await takeJobs(store);
    },
  },
  {
    name: "queue.enqueueMany()",
    carry: async (store, payload) => {
      await store.queue("jobs").enqueueMany([payload, "between", payload]);
      return (await takeJobs(store)).filter((read) => read !== "between");
    },
  },
  {
    name: "tx.enqueueTx()",
    carry: async (store, payload) => {
      await store.transaction((tx) => tx.enqueueTx("jobs", {}, payload));
      return await takeJobs(store);
    },
  },
  {
    name: "tx.enqueueManyTx()",
    carry: async (store, payload) => {
      await store.transaction((tx) => tx.enqueueManyTx("jobs", {}, ["between", payload, payload]));
      return (await takeJobs(store)).filter((read) => read !== "between");
    },
  },
  {
    name: "outbox.enqueue()",
    carry: async (store, payload) => {
      await store.outbox("mail").enqueue(payload);
      return await takeMessages(store);
    },
  },
  {
    name: "tx.outboxEnqueueTx()",
    carry: async (store, payload) => {
      await store.transaction((tx) => tx.outboxEnqueueTx("mail", {}, payload));
      return await takeMessages(store);
    },
  },
  {
    name: "stream.publish()",
    carry: async (store, payload) => {
      const offset = await store.stream("orders").publish(payload);
      return await readEvents(store, offset);
    },
  },
  {
    name: "stream.publishWithKey()",
    carry: async (store, payload) => {
      const offset = await store.stream("orders").publishWithKey("key", payload);
      return await readEvents(store, offset);
    },
  },
  {
    name: "stream.publishMany()",
    carry: async (store, payload) => {
      const [offset] = await store.stream("orders").publishMany([{ payload }, { payload }]);
      return await readEvents(store, offset ?? 0);
    },
  },
  {
    name: "tx.publishTx()",
    carry: async (store, payload) => {
      const offset = await store.transaction((tx) => tx.publishTx("orders", payload));
      return await readEvents(store, offset);
    },
  },
  {
    name: "tx.publishWithKeyTx()",
    carry: async (store, payload) => {
      const offset = await store.transaction((tx) => tx.publishWithKeyTx("orders", "key", payload));
      return await readEvents(store, offset);
    },
  },
  {
    name: "tx.publishManyTx()",
    carry: async (store, payload) => {
      const [offset] = await store.transaction((tx) =>
        tx.publishManyTx("orders", [{ key: "key", payload }, { payload }])
      );
      return await readEvents(store, offset ?? 0);
    },
  },
];

/** The values that drivers and columns lose, change or refuse elsewhere (C69, C71). */
const PAYLOADS: readonly Json[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  1.5,
  0.1,
  1e21,
  1e-7,
  5e-324,
  Number.MAX_VALUE,
  Number.MAX_SAFE_INTEGER,
  2 ** 60,
  2 ** 31,
  "",
  " ",
  "null",
  "undefined",
  "1e400",
  "{}",
  '"',
  "\\",
  "'; DROP TABLE jobs; --",
  "\0",
  "a\0b",
  String.fromCharCode(...Array.from({ length: 160 }, (_, code) => code)),
  "\u2028\u2029\ufeff\ufffd\uffff",
  "日本語 🎉 e\u0301 \u00e9 \u200b",
  "</script>",
  "2100-01-01T00:00:00.000Z",
  [],
  [[]],
  [null],
  [0, "", false, null, [], {}],
  ["a", ["b", ["c"]]],
  {},
  { "": "" },
  { a: {} },
  { b: 1, a: 2, "10": 3, "9": 4 },
  { "a.b": 1, "a b": 2, 'a"b': 3, "a\0b": 4, "a\\b": 5 },
  { a: 1, A: 2, "\u00e9": 3, "e\u0301": 4, "a ": 5 },
  // An own property of that name, which a literal does not make.
  JSON.parse('{"__proto__":{"x":1},"constructor":"c","toString":1,"hasOwnProperty":null}'),
  { items: [{ id: "o-1", lines: [{ sku: "a", count: 2 }], note: null }] },
];

/** Payloads come back as they were sent, on every way; what would not is refused. */
export function payloads(harness: Harness): void {
  for (const way of WAYS) {
    testStore(harness, `a payload of ${way.name} comes back as it was sent`, async (store) => {
      for (const payload of PAYLOADS) await assertComesBack(store, way, payload);
    });

    testStore(harness, `a long or deep payload of ${way.name} comes back`, async (store) => {
      await assertComesBack(store, way, "🎉x".repeat(700_000));
      await assertComesBack(store, way, nested(1_000));
      await assertComesBack(store, way, Array.from({ length: 20_000 }, (_, i) => i));
    });

    testStore(harness, `-0 of ${way.name} comes back as 0`, async (store) => {
      for (const read of await way.carry(store, -0)) assert(Object.is(read, 0));
      for (const read of await way.carry(store, [-0])) assertEquals(JSON.stringify(read), "[0]");
    });
  }

  testStore(harness, "a payload of 10 MB comes back", async (store) => {
    const payload = "x".repeat(10 * 1_024 * 1_024);
    const id = await store.queue("jobs").enqueue(payload);
    const snapshot = await store.queue("jobs").getJob(id);
    assert(snapshot?.payload === payload);
  });

  testStore(
    harness,
    "a payload without a prototype comes back as a plain object",
    async (store) => {
      const payload = Object.assign(Object.create(null), { a: 1 });
      const id = await store.queue("jobs").enqueue(payload);
      const read = (await store.queue("jobs").getJob(id))?.payload;
      assertEquals(read, { a: 1 });
      assertEquals(Object.getPrototypeOf(read), Object.prototype);
    },
  );

  testStore(harness, "a payload is taken when the call is made", async (store) => {
    const payload = { count: 1 };
    const enqueuing = store.queue("jobs").enqueue(payload);
    const publishing = store.stream("orders").publish(payload);
    payload.count = 2;
    const [id, offset] = [await enqueuing, await publishing];
    assertEquals((await store.queue("jobs").getJob(id))?.payload, { count: 1 });
    const [event] = await store.stream("orders").readSince(offset - 1, 1);
    assertEquals(event?.payload, { count: 1 });
  });

  testStore(harness, "every reader of a stream gets the payload", async (store) => {
    const stream = store.stream("orders");
    const receiver = await stream.subscribe("billing");
    const handled = Promise.withResolvers<unknown>();
    const projection = stream.process("totals", (event) => handled.resolve(event.payload));
    const payload: Json = { text: "a\0b 🎉", list: [null, -1.5, ""] };
    await stream.publish(payload);
    assertEquals((await soon(receiver.recv()))?.payload, payload);
    assertEquals((await receiver.readSince(0, 1))[0]?.payload, payload);
    assertEquals((await stream.readFromConsumer("audit", 1))[0]?.payload, payload);
    assertEquals(await soon(handled.promise), payload);
    await projection.stop();
  });

  testStore(harness, "a worker's handler gets the payload", async (store) => {
    const queue = store.queue("jobs");
    const payload: Json = { text: "a\0b 🎉", list: [null, -1.5, ""] };
    const handled = Promise.withResolvers<unknown>();
    const worker = queue.work((job) => handled.resolve([job.payload, job.payloadAs()]));
    await queue.enqueue(payload);
    assertEquals(await soon(handled.promise), [payload, payload]);
    await worker.stop();
  });

  testStore(harness, "store.notify() and tx.notifyTx() take any payload or none", async (store) => {
    const receiver = await store.listen("orders");
    await store.notify("orders");
    assertEquals(await soon(receiver.recv()), { channel: "orders" });
    for (const payload of PAYLOADS) await store.notify("orders", payload);
    await store.transaction(async (tx) => {
      await tx.notifyTx("orders");
      for (const payload of PAYLOADS) await tx.notifyTx("orders", payload);
    });
    assertEquals(await soon(receiver.recv()), { channel: "orders" });
  });
}

/** Claims and acks all jobs; their payloads, as jobs and as snapshots see them. */
async function takeJobs(store: Store<unknown>): Promise<unknown[]> {
  const queue = store.queue("jobs");
  const jobs = await queue.claimBatch("worker", 10);
  const seen: unknown[] = [];
  for (const job of jobs) {
    seen.push(job.payload, job.payloadAs(), (await queue.getJob(job.id))?.payload);
  }
  await queue.ackBatch(jobs);
  return seen;
}

async function takeMessages(store: Store<unknown>): Promise<unknown[]> {
  const seen: unknown[] = [];
  while (await store.outbox("mail").runOnce("worker", (payload) => seen.push(payload)));
  return seen;
}

async function readEvents(store: Store<unknown>, from: number): Promise<unknown[]> {
  const events = await store.stream("orders").readSince(from - 1, 10);
  return events.flatMap((event) => [event.payload, event.payloadAs()]);
}

async function assertComesBack(store: Store<unknown>, way: Way, payload: Json): Promise<void> {
  const sent = JSON.stringify(payload);
  const seen = await way.carry(store, payload);
  assert(seen.length > 0, `${way.name} carried nothing`);
  for (const read of seen) {
    // The text tells more than equality does: the order of keys, and own properties only.
    const text = JSON.stringify(read);
    assert(text === sent, `${way.name} made ${text?.slice(0, 200)} of ${sent.slice(0, 200)}`);
  }
}

function nested(levels: number): Json {
  let value: Json = [];
  for (let level = 1; level < levels; level++) value = level % 2 === 0 ? [value] : { in: value };
  return value;
}
