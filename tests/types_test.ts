/**
 * What the compiler makes of the public types. What must hold is stated as types and needs no run;
 * what must not compile is checked by `deno check` as a consumer's file.
 */

import { assert, assertEquals } from "@std/assert";
import type {
  EnqueueOpts,
  EventReceiver,
  Job,
  JobSnapshot,
  JoinedTx,
  Json,
  Outbox,
  Payload,
  Queue,
  QueueOpts,
  SchemaInput,
  SchemaOutput,
  StandardSchema,
  Store,
  Stream,
  StreamEvent,
  TxHandle,
  Wake,
  WakeReceiver,
} from "../mod.ts";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;
type Expect<T extends true> = T;
type Handled<Q> = Q extends Queue<never, infer Output, unknown> ? Output : never;

interface Line {
  readonly sku: string;
  readonly count?: number;
}

interface Order {
  id: string;
  note?: string;
  lines: Line[];
  state: "new" | "paid";
  parent: Order | null;
}

/** An object with a method. */
interface Money {
  readonly cents: number;
  plus(other: Money): Money;
}

/** Statements that hold when this file compiles. */
export type Statements = [
  // Interfaces, optional and recursive fields, unions and tuples are payloads as they are.
  Expect<Equal<Payload<Line>, Line>>,
  Expect<Equal<Payload<string>, string>>,
  Expect<Equal<Payload<"a" | 1 | null>, "a" | 1 | null>>,
  Expect<Equal<Payload<[id: number, at: string]>, [id: number, at: string]>>,
  Expect<Equal<Payload<Json>, Json>>,
  Expect<Order extends Payload<Order> ? true : false>,
  Expect<Payload<Order> extends Order ? true : false>,
  // What would not come back is `never`, where it stands.
  Expect<Equal<Payload<Date>, never>>,
  Expect<Equal<Payload<undefined>, never>>,
  Expect<Equal<Payload<bigint>, never>>,
  Expect<Equal<Payload<symbol>, never>>,
  Expect<Equal<Payload<() => void>, never>>,
  Expect<Equal<Payload<{ at: Date }>, { at: never }>>,
  Expect<Equal<Payload<{ a: { at: Date }[] }>, { a: { at: never }[] }>>,
  Expect<Equal<Payload<Money>["plus"], never>>,
  // Waits give nothing once closed, reads give nothing where there is none.
  Expect<Equal<Awaited<ReturnType<WakeReceiver["recv"]>>, Wake | undefined>>,
  Expect<Equal<ReturnType<WakeReceiver["tryRecv"]>, Wake | undefined>>,
  Expect<Equal<Awaited<ReturnType<EventReceiver<Line>["recv"]>>, StreamEvent<Line> | undefined>>,
  Expect<Equal<Awaited<ReturnType<Queue<Line>["claimOne"]>>, Job<Line> | undefined>>,
  Expect<Equal<Awaited<ReturnType<Queue<Line>["getJob"]>>, JobSnapshot<Line> | undefined>>,
  Expect<Equal<Awaited<ReturnType<Queue["enqueue"]>>, number>>,
  // Who joins a transaction does not end it.
  Expect<Equal<Exclude<keyof TxHandle, keyof JoinedTx>, "commit" | "rollback" | AsyncDispose>>,
];

type AsyncDispose = typeof Symbol.asyncDispose;

/** Calls that must compile as they stand; nobody runs them. */
export async function calls(store: Store<{ run(sql: string): void }>, order: Order): Promise<void> {
  const opts: EnqueueOpts = { delay: 1, priority: 2, maxAttempts: 3, expires: 4 };
  const settings: QueueOpts = { visibility: 1, maxAttempts: 2, backoff: { base: 3 } };
  const queue = store.queue<Order>("orders", settings);
  const [plain, stream] = [store.queue("jobs"), store.stream<Order>("orders")];
  const outbox: Outbox<Payload<Order>> = store.outbox<Order>("mail");
  await queue.enqueue(order, opts);
  await queue.enqueueMany([order, order]);
  await plain.enqueue({ any: ["thing", 1, null] });
  await stream.publishMany([{ key: "k", payload: order }, { payload: order }]);
  await outbox.runOnce("worker", (payload, { id, signal }) => [payload.lines[0]?.sku, id, signal]);
  queue.work((job) => job.payload.state satisfies "new" | "paid");
  queue.work((job) => job.payload, { concurrency: 5, worker: "me" });
  stream.process("totals", (event, tx) => tx.connection.run(event.payload.id), { batch: 5 });

  await store.transaction(async (tx) => {
    tx.connection.run("select 1");
    await tx.enqueueTx(queue, opts, order);
    await tx.enqueueManyTx(queue, {}, [order]);
    await tx.publishTx(stream, order);
    await tx.publishWithKeyTx(stream, "key", order);
    await tx.publishManyTx(stream, [{ payload: order }]);
    await tx.outboxEnqueueTx(outbox, {}, order);
    await tx.enqueueTx("jobs", {}, { any: ["thing", 1, null] });
    await tx.publishTx("orders", "text");
    await tx.outboxEnqueueTx("mail", {}, null);
    await tx.saveOffsetTx(stream, "billing", 1, { from: 0, ifLost: "ignore" });
    await tx.cancelTx(queue, 1);
    await tx.ackTx((await queue.claimOne("worker"))!, { ifLost: "ignore" });
  });

  // Any store is a `Store` to code that does not look at the connection.
  const anyStore: Store = store;
  const anyTx: JoinedTx = await store.beginTx();
  const anyStream: Stream<Payload<Order>> = stream;
  void [anyStore, anyTx, anyStream];
}

/** The types of a schema reach both ends. */
export async function schemas(
  store: Store,
  schema: StandardSchema<{ at: string }, { at: Date }>,
): Promise<void> {
  const queue = store.queue("orders", { schema, visibility: 5 });
  const stream = store.stream("orders", { schema });
  const outbox = store.outbox("orders", { schema });
  const holds: [
    Expect<Equal<SchemaInput<typeof schema>, { at: string }>>,
    Expect<Equal<SchemaOutput<typeof schema>, { at: Date }>>,
    Expect<Equal<Handled<typeof queue>, { at: Date }>>,
    Expect<Equal<Parameters<typeof queue.enqueue>[0], { at: string }>>,
    Expect<Equal<Parameters<typeof stream.publish>[0], { at: string }>>,
    Expect<Equal<Parameters<typeof outbox.enqueue>[0], { at: string }>>,
  ] = [true, true, true, true, true, true];
  await queue.enqueue({ at: "now" });
  queue.work((job) => job.payload.at.getTime());
  stream.process("totals", (event) => event.payload.at.getTime());
  await outbox.runOnce("worker", (payload) => payload.at.getTime());
  const job = await store.queue("jobs").claimOne("worker");
  const read: Date | undefined = job?.payloadAs(schema).at;
  await store.transaction(async (tx) => {
    await tx.enqueueTx(queue, {}, { at: "now" });
    await tx.publishTx(stream, { at: "now" });
    await tx.outboxEnqueueTx(outbox, {}, { at: "now" });
  });
  void [read, holds];
}

/** What a consumer writes at the head of a snippet. */
const HEAD = `
import type { JoinedTx, Json, Queue, Store, StandardSchema } from "${new URL(
  "../mod.ts",
  import.meta.url,
)}";
interface Order { id: string; note?: string; lines: { sku: string }[] }
declare const store: Store<{ run(sql: string): void }>;
declare const tx: JoinedTx;
declare const order: Order;
declare const json: Json;
declare const schema: StandardSchema<{ at: string }, { at: Date }>;
const orders: Queue<Order> = store.queue<Order>("orders");
export {};
`;

/** Statements that compile in a consumer's file. */
const GOOD: Readonly<Record<string, string>> = {
  "a handle made in place can be enqueued to": `await tx.enqueueTx(store.queue("a"), {}, { b: 1 });
     await tx.publishTx(store.stream("a"), "text");
     await tx.outboxEnqueueTx(store.outbox("a"), {}, null);
     await tx.enqueueTx(store.queue<Order>("a"), {}, order);
     await tx.enqueueTx(store.queue("a", { schema }), {}, { at: "now" });`,
  "an interface is a payload by name too": `await tx.enqueueTx("a", {}, order);
     await tx.enqueueManyTx("a", {}, [order]);
     await tx.publishTx("a", order);
     await tx.publishWithKeyTx("a", "key", order);
     await tx.outboxEnqueueTx("a", {}, order);`,
  "the handler of a transactional worker knows its job and its tx":
    `orders.work((job, tx) => tx.enqueueTx("a", {}, job.payload.id), { tx: true });
     store.queue("a").work(async (job, tx) => {
       tx.connection.run(String(job.id));
     }, { tx: true, concurrency: 2 });`,
  "a value of type Json is a payload": `await store.queue("a").enqueue(json);
     await store.notify("a", json);
     await tx.enqueueTx("a", {}, json);`,
  "a transaction gives what its work gives":
    `const id: number = await store.transaction((tx) => tx.enqueueTx("a", {}, 1));
     const text: string = await store.transaction(() => "text");
     void [id, text];`,
};

/** Statements that must not compile, and the diagnostics one of which says why. */
const BAD: Readonly<Record<string, readonly [codes: string, statement: string]>> = {
  "a Date is no payload": ["TS2345", `await store.queue("a").enqueue(new Date());`],
  "a Date is no payload of a queue of dates": [
    "TS2345",
    `await store.queue<Date>("a").enqueue(new Date());`,
  ],
  "a field that is a Date is no payload": [
    "TS2322",
    `await store.queue<{ at: Date }>("a").enqueue({ at: new Date() });`,
  ],
  "a Date is no event": ["TS2345", `await store.stream("a").publish(new Date());`],
  "a Date is no message": ["TS2345", `await store.outbox("a").enqueue(new Date());`],
  "undefined is no payload": ["TS2345", `await store.queue("a").enqueue(undefined);`],
  "a bigint is no payload": ["TS2345", `await store.queue("a").enqueue(1n);`],
  "a function is no payload": ["TS2345", `await store.queue("a").enqueue(() => 1);`],
  "a Map is no payload": ["TS2345", `await store.queue("a").enqueue(new Map());`],
  "a payload of another type is refused": ["TS2322", `await orders.enqueue({ id: 1, lines: [] });`],
  "a missing field is refused": ["TS2345", `await orders.enqueue({ id: "o-1" });`],
  "an event of another type is refused": [
    "TS2322",
    `await store.stream<Order>("a").publish({ id: 1, lines: [] });`,
  ],
  "a payload of another type is refused in a tx": [
    "TS2322|TS2769",
    `await tx.enqueueTx(orders, {}, { id: 1, lines: [] });`,
  ],
  "a payload of another type is refused in a tx's batch": [
    "TS2322|TS2769",
    `await tx.enqueueManyTx(orders, {}, [{ id: "o-1", lines: "x" }]);`,
  ],
  "an event of another type is refused in a tx": [
    "TS2322|TS2769",
    `const stream = store.stream<Order>("a");
     await tx.publishTx(stream, { id: 1, lines: [] });`,
  ],
  "a message of another type is refused in a tx": [
    "TS2322|TS2769",
    `const outbox = store.outbox<Order>("a");
     await tx.outboxEnqueueTx(outbox, {}, { id: 1, lines: [] });`,
  ],
  "a Date is no payload by name": ["TS2345|TS2769", `await tx.enqueueTx("a", {}, new Date());`],
  "a field that is a Date is no payload by name": [
    "TS2322|TS2345|TS2769",
    `await tx.publishTx("a", { at: new Date() });`,
  ],
  "a payload that its schema does not take is refused": [
    "TS2322",
    `await store.queue("a", { schema }).enqueue({ at: new Date() });`,
  ],
  "the output of a schema is not its input": [
    "TS2339",
    `const queue = store.queue("a", { schema });
     queue.work((job) => job.payload.at.toUpperCase());`,
  ],
  "the payload and the options are not exchanged": [
    "TS2345|TS2559|TS2769",
    `await tx.enqueueTx(orders, order, {});`,
  ],
  "an unknown option is refused": ["TS2353", `await orders.enqueue(order, { prio: 1 });`],
  "an unknown setting is refused": ["TS2769", `store.queue("a", { attempts: 1 });`],
  "a date is not a duration": ["TS2322", `await orders.enqueue(order, { delay: new Date() });`],
  "a number is not an instant": ["TS2322", `await orders.enqueue(order, { runAt: Date.now() });`],
  "a joined tx cannot be committed": ["TS2339", `await tx.commit();`],
  "a handler's tx cannot be committed": [
    "TS2339",
    `await store.transaction((tx) => tx.commit());`,
  ],
  "an outbox is no queue": ["TS2345|TS2769", `await tx.enqueueTx(store.outbox("a"), {}, 1);`],
  "a channel is a name": ["TS2345", `await tx.notifyTx(store.stream("a"));`],
  "a payload cannot be written to": [
    "TS2540",
    `orders.work((job) => { job.payload = order; });`,
  ],
};

Deno.test("a consumer's file compiles where it should, and only there", async () => {
  const statements = [
    ...Object.values(GOOD),
    ...Object.values(BAD).map(([, statement]) => statement),
  ];
  const faults = await denoCheck(statements);
  const wrong: string[] = [];
  for (const [index, name] of Object.keys(GOOD).entries()) {
    const found = faults[index] ?? [];
    if (found.length > 0) wrong.push(`${name}: expected nothing, got ${found.join(", ")}`);
  }
  for (const [index, [name, [codes]]] of Object.entries(BAD).entries()) {
    const found = faults[Object.keys(GOOD).length + index] ?? [];
    if (found.length !== 1 || !codes.split("|").includes(found[0] ?? "")) {
      wrong.push(`${name}: expected one ${codes}, got ${found.join(", ") || "nothing"}`);
    }
  }
  assertEquals(wrong, []);
});

/** Checks a consumer's file, without any settings of ours; the diagnostics of each statement. */
async function denoCheck(statements: readonly string[]): Promise<string[][]> {
  const folder = await Deno.makeTempDir({ prefix: "alkstore_types_" });
  try {
    // One line and one scope each, so that a line tells whose diagnostic it is.
    const lines = statements.map((statement, index) =>
      `export async function s${index}(): Promise<void> { ${statement.replaceAll("\n", " ")} }\n`
    );
    const file = `${folder}/consumer.ts`;
    await Deno.writeTextFile(file, HEAD + lines.join(""));
    const { stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["check", "--quiet", "--no-config", "--no-lock", "--no-remote", file],
      env: { NO_COLOR: "1" },
      stdout: "null",
    }).output();
    return readFaults(new TextDecoder().decode(stderr), statements.length);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The codes of the diagnostics of each line after the head. */
function readFaults(output: string, count: number): string[][] {
  const faults: string[][] = Array.from({ length: count }, () => []);
  let code: string | undefined;
  for (const line of output.split("\n")) {
    code = /^(TS\d+) \[ERROR\]/.exec(line)?.[1] ?? code;
    // Only the first place of a diagnostic is its own; deeper ones are related.
    const place = /^ {4}at file:\S+?:(\d+):\d+$/.exec(line)?.[1];
    if (place === undefined || code === undefined) continue;
    const found = faults[Number(place) - HEAD.split("\n").length];
    assert(found !== undefined, `a diagnostic outside of the statements: ${line}`);
    found.push(code);
    code = undefined;
  }
  return faults;
}
