import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { CodecError, type SchemaResult, type StandardSchema, type Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { assertRefuses, assertWritesNothing, fromJavaScript } from "./refusals.ts";
import { soon, until } from "./wait.ts";

/** What is sent: the instant as text. */
interface OrderInput {
  readonly id: string;
  readonly at: string;
}

/** What a handler gets: the instant as a `Date`. */
interface Order {
  readonly id: string;
  readonly at: Date;
}

/** A validator as a library would make it, with a transform. */
const order: StandardSchema<OrderInput, Order> = schemaOf(parseOrder);

/** The same, but it has to ask somebody first. */
const slowOrder: StandardSchema<OrderInput, Order> = schemaOf(async (value) => {
  await Promise.resolve();
  return parseOrder(value);
});

const GOOD: OrderInput = { id: "o-1", at: "2030-01-02T03:04:05.678Z" };
const READ: Order = { id: "o-1", at: new Date("2030-01-02T03:04:05.678Z") };

/** What does not fit, and where. */
const BAD: readonly (readonly [path: string, payload: unknown])[] = [
  ["$", "o-1"],
  ["$.id", { ...GOOD, id: 1 }],
  ["$.at", { ...GOOD, at: "yesterday" }],
];

/** What is no Standard Schema. */
const NO_SCHEMAS: Readonly<Record<string, unknown>> = {
  "a number": 5,
  "a string": "order",
  "null": null,
  "an empty object": {},
  "a function": () => true,
  "an empty ~standard": { "~standard": {} },
  "a validate() that is none": { "~standard": { version: 1, vendor: "x", validate: 5 } },
};

/** A Standard Schema on the way in and out: any library's, none is needed. */
export function schemas(harness: Harness): void {
  for (
    const [kind, schema] of [["a schema", order], ["an asynchronous schema", slowOrder]] as const
  ) {
    refusesMisfits(harness, kind, schema);
    readsThrough(harness, kind, schema);
  }

  testStore(
    harness,
    "a payload is stored as it was given, the transform runs at the read",
    async (store) => {
      const queue = store.queue("orders", { schema: order });
      const id = await queue.enqueue(GOOD);
      assertEquals((await store.queue("orders").getJob(id))?.payload, { ...GOOD });
      assertEquals((await queue.getJob(id))?.payload, READ);
      const job = await queue.claimOne("worker");
      assertEquals(job?.payload, READ);
      assertEquals(job?.payloadAs<OrderInput>(), GOOD);
      assertEquals(job?.payloadAs(order).at, READ.at);
    },
  );

  testStore(harness, "a stream reads its events through its schema", async (store) => {
    const stream = store.stream("orders", { schema: order });
    const receiver = await stream.subscribe("billing");
    await stream.publish(GOOD);
    const [event] = await stream.readSince(0, 1);
    assertEquals(event?.payload, READ);
    assertEquals(event?.payloadAs<OrderInput>(), GOOD);
    assertEquals((await soon(receiver.recv()))?.payload, READ);
    const [raw] = await store.stream("orders").readSince(0, 1);
    assertEquals(raw?.payload, { ...GOOD });
    assertEquals(raw?.payloadAs(order), READ);
  });

  testStore(harness, "a row that does not fit its schema costs only itself", async (store) => {
    const queue = store.queue("orders", { schema: order });
    const bad = await store.queue("orders").enqueue({ id: 7 });
    await queue.enqueue(GOOD);
    const [first, second] = await queue.claimBatch("worker", 10);
    const error = assertThrows(() => first?.payload, CodecError, "the id must be a string");
    assertEquals(error.path, "$.id");
    assert(error.message.includes(`job ${bad}`), error.message);
    assertEquals(second?.payload, READ);
    assertEquals(first?.payloadAs<unknown>(), { id: 7 });
    assertEquals(await first?.fail(error), true);
  });

  testStore(harness, "payloadAs() refuses what does not fit, with its path", async (store) => {
    await store.queue("orders").enqueue({ lines: [{ sku: 1 }] });
    await store.stream("orders").publish({ lines: [{ sku: 1 }] });
    const faulty = schemaOf<unknown>(() => ({
      issues: [{ message: "a sku is text", path: ["lines", { key: 0 }, "sku"] }],
    }));
    const job = await store.queue("orders").claimOne("worker");
    const [event] = await store.stream("orders").readSince(0, 1);
    for (const read of [job, event]) {
      const error = assertThrows(() => read?.payloadAs(faulty), CodecError, "a sku is text");
      assertEquals([error.path, error.code], ["$.lines[0].sku", "Codec"]);
    }
  });

  testStore(harness, "a name in a tx checks no schema, the handle does", async (store) => {
    const queue = store.queue("orders", { schema: order });
    const misfit = fromJavaScript({ id: 7 });
    await store.transaction(async (tx) => {
      await assertRejects(() => tx.enqueueTx(queue, {}, misfit), CodecError, "$.id");
      await tx.enqueueTx("orders", {}, misfit);
    });
    assertEquals((await queue.stats()).ready, 1);
  });

  testStore(
    harness,
    "a payload that is no JSON is refused, whatever its schema says",
    async (store) => {
      const anything = schemaOf<unknown>((value) => ({ value }));
      const queue = store.queue("orders", { schema: anything });
      await assertRejects(() => queue.enqueue({ at: new Date() }), CodecError, "$.at");
    },
  );

  testStore(
    harness,
    "an asynchronous schema cannot be read at once, and says where it can",
    async (store) => {
      const queue = store.queue("orders", { schema: slowOrder });
      const id = await queue.enqueue(GOOD);
      const job = await queue.claimOne("worker");
      assertThrows(() => job?.payload, TypeError, "asynchronously");
      assertThrows(() => job?.payloadAs(slowOrder), TypeError, "asynchronously");
      const snapshot = await queue.getJob(id);
      assertThrows(() => snapshot?.payload, TypeError, "asynchronously");
      assertEquals(job?.payloadAs<OrderInput>(), GOOD);
    },
  );

  testStore(harness, "a schema that is none is refused where it is given", async (store) => {
    await store.queue("orders").enqueue(null);
    const job = await store.queue("orders").claimOne("worker");
    for (const [what, schema] of Object.entries(NO_SCHEMAS)) {
      const names = ["Standard Schema"];
      const opts = { schema: fromJavaScript(schema) };
      const doors = {
        queue: () => store.queue("orders", opts),
        stream: () => store.stream("orders", opts),
        outbox: () => store.outbox("orders", opts),
      };
      for (const [kind, open] of Object.entries(doors)) {
        const expected = { error: TypeError, says: `Cannot open ${kind}`, names, throws: true };
        await assertRefuses(open, expected, `${kind} with ${what}`);
      }
      const expected = { error: TypeError, says: "Cannot read job", names, throws: true };
      const call = () => job?.payloadAs(opts.schema);
      await assertRefuses(call, expected, `payloadAs with ${what}`);
    }
  });
}

/** Every way in checks the payload before anything is written. */
function refusesMisfits(
  harness: Harness,
  kind: string,
  schema: StandardSchema<OrderInput, Order>,
): void {
  const doors: Record<string, (store: Store<unknown>, payload: never) => Promise<unknown>> = {
    "queue.enqueue()": (store, payload) => store.queue("q", { schema }).enqueue(payload),
    "queue.enqueueMany()": (store, payload) =>
      store.queue("q", { schema }).enqueueMany([GOOD, payload]),
    "outbox.enqueue()": (store, payload) => store.outbox("o", { schema }).enqueue(payload),
    "stream.publish()": (store, payload) => store.stream("s", { schema }).publish(payload),
    "stream.publishWithKey()": (store, payload) =>
      store.stream("s", { schema }).publishWithKey("key", payload),
    "stream.publishMany()": (store, payload) =>
      store.stream("s", { schema }).publishMany([{ payload: GOOD }, { payload }]),
    "tx.enqueueTx()": (store, payload) =>
      inTx(store, (tx) => tx.enqueueTx(store.queue("q", { schema }), {}, payload)),
    "tx.enqueueManyTx()": (store, payload) =>
      inTx(store, (tx) => tx.enqueueManyTx(store.queue("q", { schema }), {}, [GOOD, payload])),
    "tx.outboxEnqueueTx()": (store, payload) =>
      inTx(store, (tx) => tx.outboxEnqueueTx(store.outbox("o", { schema }), {}, payload)),
    "tx.publishTx()": (store, payload) =>
      inTx(store, (tx) => tx.publishTx(store.stream("s", { schema }), payload)),
    "tx.publishWithKeyTx()": (store, payload) =>
      inTx(store, (tx) => tx.publishWithKeyTx(store.stream("s", { schema }), "key", payload)),
    "tx.publishManyTx()": (store, payload) =>
      inTx(store, (tx) => tx.publishManyTx(store.stream("s", { schema }), [{ payload }])),
  };
  for (const [call, send] of Object.entries(doors)) {
    testStore(harness, `${call} checks its payload by ${kind}`, async (store, database) => {
      await assertWritesNothing(database, async () => {
        for (const [path, payload] of BAD) {
          const error = await assertRejects(
            () => send(store, fromJavaScript(payload)),
            CodecError,
            "must be",
          );
          assertEquals(error.path, path);
        }
      });
      await send(store, fromJavaScript(GOOD));
    });
  }
}

/** Every handler gets what the schema makes of the payload. */
function readsThrough(
  harness: Harness,
  kind: string,
  schema: StandardSchema<OrderInput, Order>,
): void {
  testStore(harness, `handlers read through ${kind}`, async (store) => {
    const seen: Order[] = [];
    const queue = store.queue("orders", { schema });
    const stream = store.stream("orders", { schema });
    const outbox = store.outbox("orders", { schema });
    await queue.enqueueMany([GOOD, GOOD]);
    await stream.publish(GOOD);
    await outbox.enqueue(GOOD);
    await outbox.enqueue(GOOD);
    const plain = queue.work((job) => void seen.push(job.payload));
    await until(async () => (await queue.stats()).ready === 0 && seen.length === 2);
    await plain.stop();
    await queue.enqueue(GOOD);
    const loops = [
      queue.work((job, _tx) => void seen.push(job.payload), { tx: true }),
      stream.process("totals", (event) => void seen.push(event.payload)),
    ];
    await until(() => seen.length === 4);
    for (const loop of loops) await loop.stop();
    await outbox.runOnce("worker", (payload) => void seen.push(payload));
    const mailer = outbox.run((payload) => void seen.push(payload));
    await until(() => seen.length === 6);
    await mailer.stop();
    assertEquals(seen, Array.from({ length: 6 }, () => READ));
  });

  testStore(harness, `a worker fails what does not fit ${kind}`, async (store) => {
    const id = await store.queue("orders").enqueue({ id: 7 }, { maxAttempts: 1 });
    const queue = store.queue("orders", { schema });
    let calls = 0;
    const worker = queue.work(() => calls++);
    const dead = await until(async () => (await queue.deadJobs())[0]);
    await worker.stop();
    assertEquals([dead.id, calls], [id, 0]);
    assert(dead.lastError?.includes("$.id"), dead.lastError);
  });

  testStore(harness, `a projection's handler meets a misfit of ${kind}`, async (store) => {
    await store.stream("orders").publish({ id: 7 });
    await store.stream("orders", { schema }).publish(GOOD);
    const seen: unknown[] = [];
    const projection = store.stream("orders", { schema }).process("totals", (event) => {
      try {
        seen.push(event.payload);
      } catch (error) {
        seen.push(error instanceof CodecError && error.path);
      }
    });
    await until(() => seen.length === 2);
    await projection.stop();
    assertEquals(seen, ["$.id", READ]);
  });
}

function schemaOf<Output, Input = Output>(
  validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>,
): StandardSchema<Input, Output> {
  return { "~standard": { version: 1, vendor: "alkstore tests", validate } };
}

function parseOrder(value: unknown): SchemaResult<Order> {
  if (typeof value !== "object" || value === null) {
    return { issues: [{ message: "an order must be an object" }] };
  }
  const id: unknown = Reflect.get(value, "id");
  if (typeof id !== "string") {
    return { issues: [{ message: "the id must be a string", path: ["id"] }] };
  }
  const at = new Date(String(Reflect.get(value, "at")));
  if (Number.isNaN(at.getTime())) {
    return { issues: [{ message: "the instant must be a date", path: [{ key: "at" }] }] };
  }
  return { value: { id, at } };
}

async function inTx(
  store: Store<unknown>,
  work: (tx: Awaited<ReturnType<typeof store.beginTx>>) => Promise<unknown>,
): Promise<void> {
  const tx = await store.beginTx();
  try {
    await work(tx);
  } finally {
    // What was refused left the transaction usable: nothing is in it.
    await tx.commit();
  }
}
