import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { CodecError, PayloadTooLargeError, type Store, type TxHandle } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { assertRefuses, assertWritesNothing, fromJavaScript } from "./refusals.ts";
import { soon, until } from "./wait.ts";

/** A call that takes a payload. */
interface Door {
  readonly call: string;
  readonly says: string;
  /** Nothing is a payload too: none. */
  readonly isOptional?: boolean;
  readonly send: (scene: Scene, payload: never) => Promise<unknown>;
}

interface Scene {
  readonly store: Store<unknown>;
  readonly tx: TxHandle<unknown>;
}

const DOORS: readonly Door[] = [
  {
    call: "queue.enqueue()",
    says: 'Cannot enqueue to queue "jobs"',
    send: ({ store }, payload) => store.queue("jobs").enqueue(payload),
  },
  {
    call: "queue.enqueueMany()",
    says: 'Cannot enqueue to queue "jobs"',
    send: ({ store }, payload) => store.queue("jobs").enqueueMany([1, payload, 2]),
  },
  {
    call: "outbox.enqueue()",
    says: 'Cannot enqueue to outbox "mail"',
    send: ({ store }, payload) => store.outbox("mail").enqueue(payload),
  },
  {
    call: "stream.publish()",
    says: 'Cannot publish to stream "orders"',
    send: ({ store }, payload) => store.stream("orders").publish(payload),
  },
  {
    call: "stream.publishWithKey()",
    says: 'Cannot publish to stream "orders"',
    send: ({ store }, payload) => store.stream("orders").publishWithKey("key", payload),
  },
  {
    call: "stream.publishMany()",
    says: 'Cannot publish to stream "orders"',
    send: ({ store }, payload) =>
      store.stream("orders").publishMany([{ payload: 1 }, { key: "key", payload }]),
  },
  {
    call: "store.notify()",
    says: "Cannot notify",
    isOptional: true,
    send: ({ store }, payload) => store.notify("orders", payload),
  },
];

const TX_DOORS: readonly Door[] = [
  {
    call: "tx.enqueueTx()",
    says: 'Cannot enqueue to queue "jobs"',
    send: ({ tx }, payload) => tx.enqueueTx("jobs", {}, payload),
  },
  {
    call: "tx.enqueueManyTx()",
    says: 'Cannot enqueue to queue "jobs"',
    send: ({ tx }, payload) => tx.enqueueManyTx("jobs", {}, [1, payload, 2]),
  },
  {
    call: "tx.outboxEnqueueTx()",
    says: 'Cannot enqueue to outbox "mail"',
    send: ({ tx }, payload) => tx.outboxEnqueueTx("mail", {}, payload),
  },
  {
    call: "tx.publishTx()",
    says: 'Cannot publish to stream "orders"',
    send: ({ tx }, payload) => tx.publishTx("orders", payload),
  },
  {
    call: "tx.publishWithKeyTx()",
    says: 'Cannot publish to stream "orders"',
    send: ({ tx }, payload) => tx.publishWithKeyTx("orders", "key", payload),
  },
  {
    call: "tx.publishManyTx()",
    says: 'Cannot publish to stream "orders"',
    send: ({ tx }, payload) =>
      tx.publishManyTx("orders", [{ payload: 1 }, { key: "key", payload }]),
  },
  {
    call: "tx.notifyTx()",
    says: "Cannot notify",
    isOptional: true,
    send: ({ tx }, payload) => tx.notifyTx("orders", payload),
  },
];

class Order {
  readonly id: string = "o-1";
}

/** What is not JSON, and where the fault lies. */
const BAD: readonly (readonly [path: string, value: unknown, fact: string])[] = [
  ["$", undefined, "undefined"],
  ["$", NaN, "NaN"],
  ["$", Infinity, "Infinity"],
  ["$", -Infinity, "-Infinity"],
  ["$", 1n, "bigint"],
  ["$", () => 1, "function"],
  ["$", Symbol("s"), "symbol"],
  ["$", "\ud800", "surrogate"],
  ["$", "a\udc00b", "surrogate"],
  ["$", new Date(0), "Date"],
  ["$", new Map([["a", 1]]), "Map"],
  ["$", new Set([1]), "Set"],
  ["$", /x/, "RegExp"],
  ["$", new Uint8Array(2), "Uint8Array"],
  ["$", new Error("x"), "Error"],
  ["$", new URL("https://example.org"), "URL"],
  ["$", Promise.resolve(1), "Promise"],
  ["$", new String("x"), "String"],
  ["$", new Order(), "Order"],
  ["$", Object.create({ inherited: 1 }), "instance"],
  ["$.items[3].at", { items: [0, 1, 2, { at: new Date(0) }] }, "Date"],
  ["$.a", { a: undefined }, "undefined"],
  ["$[1]", [1, undefined], "undefined"],
  ["$[1]", fromSparse(), "undefined"],
  ["$[0][1][2]", [[0, [0, 0, NaN]]], "NaN"],
  ['$["a b"].c', { "a b": { c: 1n } }, "bigint"],
  ['$[""]', { "": () => 1 }, "function"],
  ['$["0"]', { "0": NaN }, "NaN"],
  ["$", { toJSON: () => 1 }, "toJSON"],
  ['$["\\ud800"]', { "\ud800": 1 }, "surrogate"],
  ["$.a.b", { a: { b: "\udfff" } }, "surrogate"],
];

/** Payloads that are not JSON are refused with their path; rows that are not cost only themselves. */
export function codec(harness: Harness): void {
  for (const door of DOORS) {
    testStore(
      harness,
      `${door.call} refuses what is not JSON, names its path and writes nothing`,
      async (store, database) => {
        const scene: Scene = { store, tx: fromJavaScript(undefined) };
        await assertWritesNothing(database, () => assertRefusesBad(door, scene));
      },
    );
  }

  for (const door of TX_DOORS) {
    testStore(
      harness,
      `${door.call} refuses what is not JSON, and the tx stays usable`,
      async (store, database) => {
        const refusing: Scene = { store, tx: await store.beginTx() };
        await assertWritesNothing(database, async () => {
          await assertRefusesBad(door, refusing);
          await refusing.tx.commit();
        });
        const tx = await store.beginTx();
        await assertRejects(() => door.send({ store, tx }, fromJavaScript(1n)), CodecError);
        await door.send({ store, tx }, fromJavaScript("good"));
        const id = await tx.enqueueTx("after", {}, "good");
        await tx.commit();
        assertEquals((await store.queue("after").getJob(id))?.payload, "good");
      },
    );
  }

  testStore(harness, "a notify payload past the engine's limit is refused", async (store) => {
    const limit = harness.traits.notifyLimit;
    const long = "é".repeat(50_000);
    if (limit === undefined) {
      await store.notify("orders", long);
      await store.transaction((tx) => tx.notifyTx("orders", long));
      return;
    }
    // Two quotes belong to the text; the limit counts bytes, not characters.
    const longest = "x".repeat(limit - 2);
    const tooLong = "é".repeat(limit / 2);
    await store.notify("orders", longest);
    const error = await assertRejects(() => store.notify("orders", tooLong), PayloadTooLargeError);
    assertEquals([error.limit, error.code], [limit, "PayloadTooLarge"]);
    const tx = await store.beginTx();
    await tx.notifyTx("orders", longest);
    await assertRejects(() => tx.notifyTx("orders", tooLong), PayloadTooLargeError, "outbox");
    await tx.commit();
  });

  poisonedRows(harness);
}

/** A stored payload that cannot be read (C34). */
function poisonedRows(harness: Harness): void {
  testStore(harness, "a poisoned job costs only itself", async (store, database) => {
    const queue = store.queue<number>("jobs");
    const ids = await queue.enqueueMany([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await database.poisonJob(ids[4]!, "{no json");
    const jobs = await queue.claimBatch("worker", 10);
    const good = jobs.filter((job) => job.id !== ids[4]);
    assertEquals(good.map((job) => job.payload), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    assertEquals((await queue.ackBatch(good)).length, 9);

    const poisoned = jobs.find((job) => job.id === ids[4]);
    const error = assertThrows(() => poisoned?.payload, CodecError);
    assertEquals(error.path, "$");
    assert(error.message.includes(`job ${ids[4]}`) && error.message.includes('"jobs"'));
    assertThrows(() => poisoned?.payloadAs(), CodecError);
    assertEquals(await poisoned?.fail("cannot be read"), true);
    const dead = await queue.getJob(ids[4]!);
    assertEquals([dead?.state, dead?.reason, dead?.lastError], [
      "dead",
      "failed",
      "cannot be read",
    ]);
  });

  for (const text of ["", " ", "undefined", "NaN", "[1,]", "'a'", "1 2", "{"]) {
    testStore(
      harness,
      `a job whose payload reads ${JSON.stringify(text)} can be seen, retried and purged`,
      async (store, database) => {
        const queue = store.queue("jobs");
        const id = await queue.enqueue("good", { maxAttempts: 2 });
        await database.poisonJob(id, text);
        const snapshot = await queue.getJob(id);
        assertEquals(snapshot?.state, "ready");
        assertThrows(() => snapshot?.payload, CodecError, `job ${id}`);
        assertEquals(await (await queue.claimOne("worker"))?.retry({ delay: 0 }), true);
        assertEquals(await (await queue.claimOne("worker"))?.retry(), true);
        const [dead] = await queue.deadJobs();
        assertEquals([dead?.id, dead?.reason], [id, "exhausted"]);
        assertThrows(() => dead?.payload, CodecError);
        assertEquals(await queue.purgeDead(), 1);
      },
    );
  }

  testStore(harness, "a worker fails a poisoned job and goes on", async (store, database) => {
    const queue = store.queue<string>("jobs");
    const bad = await queue.enqueue("bad", { maxAttempts: 1 });
    await database.poisonJob(bad, "{no json");
    await queue.enqueue("good");
    const handled: string[] = [];
    const worker = queue.work((job) => void handled.push(job.payload));
    const dead = await until(async () => {
      const [job] = await queue.deadJobs();
      return handled.length > 0 ? job : undefined;
    });
    await worker.stop();
    assertEquals(handled, ["good"]);
    assertEquals([dead.id, dead.reason], [bad, "exhausted"]);
    assert(dead.lastError?.startsWith("CodecError: "), dead.lastError);
  });

  testStore(harness, "outbox.runOnce() retries a poisoned message", async (store, database) => {
    const outbox = store.outbox("mail");
    const id = await outbox.enqueue("bad");
    await database.poisonJob(id, "{no json");
    let calls = 0;
    assertEquals(await outbox.runOnce("worker", () => calls++), true);
    assertEquals(calls, 0);
    const snapshot = await outbox.getJob(id);
    assertEquals([snapshot?.state, snapshot?.attempts], ["scheduled", 1]);
    assert(snapshot?.lastError?.startsWith("CodecError: "), snapshot?.lastError);
  });

  testStore(harness, "a poisoned event costs only itself", async (store, database) => {
    const stream = store.stream<string>("orders");
    const offsets = await stream.publishMany([{ payload: "a" }, { payload: "b" }, {
      payload: "c",
    }]);
    await database.poisonEvent(offsets[1]!, "{no json");
    const receiver = await stream.subscribe("billing");
    const events = await stream.readSince(0, 10);
    for (
      const [first, bad, last] of [events, [
        await soon(receiver.recv()),
        await soon(receiver.recv()),
        await soon(receiver.recv()),
      ]]
    ) {
      assertEquals([first?.payload, last?.payload], ["a", "c"]);
      assertEquals(bad?.offset, offsets[1]);
      const error = assertThrows(() => bad?.payload, CodecError, `event ${offsets[1]}`);
      assertEquals(error.path, "$");
      assertThrows(() => bad?.payloadAs(), CodecError);
    }
    assertEquals(await receiver.saveOffset(), true);
  });

  testStore(harness, "a projection may pass over a poisoned event", async (store, database) => {
    const stream = store.stream<string>("orders");
    const [bad] = await stream.publishMany([{ payload: "bad" }, { payload: "good" }]);
    await database.poisonEvent(bad!, "{no json");
    const seen: unknown[] = [];
    const projection = stream.process("totals", (event) => {
      try {
        seen.push(event.payload);
      } catch (error) {
        seen.push(error instanceof CodecError);
      }
    });
    await until(() => seen.length === 2);
    await projection.stop();
    assertEquals(seen, [true, "good"]);
  });
}

async function assertRefusesBad(door: Door, scene: Scene): Promise<void> {
  for (const [path, value, fact] of BAD) {
    if (value === undefined && door.isOptional === true) continue;
    assertEquals(await refusedPath(door, scene, value, fact), path, fact);
  }
  // The path of a thousand levels is shortened in the middle.
  for (const [start, value, fact] of endlessOnes()) {
    const path = await refusedPath(door, scene, value, fact);
    assert(path.startsWith(start) && path.length < 300, path);
  }
}

async function refusedPath(
  door: Door,
  scene: Scene,
  value: unknown,
  fact: string,
): Promise<string> {
  const error = await assertRefuses(
    () => door.send(scene, fromJavaScript(value)),
    { error: CodecError, says: door.says, names: [fact] },
    `${door.call} with ${fact}`,
  );
  assert(error instanceof CodecError && error.message.includes(error.path), error.message);
  return error.path;
}

/** A hole in an array, which no literal may have by our lint rules. */
function fromSparse(): unknown {
  const items: unknown[] = [1];
  items[2] = 3;
  return items;
}

function endlessOnes(): (readonly [start: string, value: unknown, fact: string])[] {
  let deep: unknown = [];
  for (let level = 0; level < 1_000; level++) deep = [deep];
  let deeper: unknown = 1;
  for (let level = 0; level < 10_000; level++) deeper = { in: deeper };
  const cycle: Record<string, unknown> = {};
  cycle["self"] = { again: cycle };
  const list: unknown[] = [];
  list.push(list, list);
  return [
    ["$[0][0]", deep, "nesting past 1000"],
    ["$.in.in", deeper, "nesting past 1000"],
    ["$.self.again", cycle, "cycle"],
    ["$[0][0]", list, "cycle"],
  ];
}
