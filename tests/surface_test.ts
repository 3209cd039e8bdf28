/** The table "Surface" of the contract, as data, held against the real objects and their types. */

import { assert, assertEquals, assertFalse, assertStrictEquals } from "@std/assert";
import { openSqlite } from "../engines/sqlite.ts";
import * as exports from "../mod.ts";
import {
  AlkstoreError,
  ClosedError,
  CodecError,
  DatabaseError,
  type EventReceiver,
  InvalidNameError,
  type Job,
  type Lock,
  type Outbox,
  PayloadTooLargeError,
  type Queue,
  Reserved,
  ReservedNameError,
  type Store,
  type Stream,
  type TxHandle,
  type WakeReceiver,
} from "../mod.ts";

/** A method and how many arguments it needs and takes, or a value. */
type Member =
  | { readonly kind: "sync" | "async"; readonly least: number; readonly most: number }
  | { readonly kind: "value" };

const value = { kind: "value" } as const;
const sync = (least: number, most = least) => ({ kind: "sync", least, most }) as const;
const async = (least: number, most = least) => ({ kind: "async", least, most }) as const;

/**
 * What contract v1 pins, what is an extension of it, and the facts an object carries. Moving a member
 * between the columns is a decision about the contract.
 */
const SURFACE = {
  Store: {
    pinned: {
      notify: async(1, 2),
      listen: async(1),
      stream: sync(1, 2),
      queue: sync(1, 2),
      outbox: sync(1, 2),
      tryLock: async(3),
      beginTx: async(0, 1),
    },
    extension: {
      transaction: async(1, 2),
      joinTx: async(1),
      status: async(0),
      drain: async(0),
      close: async(0, 1),
      onEvent: sync(1),
    },
    facts: {},
  },
  Stream: {
    pinned: {
      publish: async(1),
      publishWithKey: async(2),
      readSince: async(2),
      readFromConsumer: async(2),
      saveOffset: async(2),
      getOffset: async(1),
      subscribe: async(1),
      trimTo: async(1),
    },
    extension: {
      publishMany: async(1),
      process: sync(2, 3),
      info: async(0),
      resetOffset: async(2),
      dropConsumer: async(1),
    },
    facts: { name: value },
  },
  EventReceiver: {
    pinned: {
      recv: async(0, 1),
      tryRecv: async(0),
      readSince: async(2),
      saveOffset: async(0),
      offset: sync(0),
    },
    extension: { close: async(0), missed: value },
    facts: {},
  },
  WakeReceiver: {
    pinned: { recv: async(0, 1), tryRecv: sync(0), recvTimeout: async(1, 2) },
    extension: { close: async(0) },
    facts: {},
  },
  Queue: {
    pinned: {
      enqueue: async(1, 2),
      claimOne: async(1),
      claimBatch: async(2),
      ackBatch: async(1),
      cancel: async(1),
      getJob: async(1),
      sweepExpired: async(0),
    },
    extension: {
      enqueueMany: async(1, 2),
      work: sync(1, 2),
      stats: async(0),
      deadJobs: async(0, 1),
      requeue: async(1),
      purgeDead: async(0, 1),
    },
    facts: { name: value },
  },
  Job: {
    pinned: {
      ack: async(0),
      retry: async(0, 1),
      fail: async(0, 1),
      heartbeat: async(0, 1),
      payloadAs: sync(0, 1),
    },
    extension: { release: async(0), signal: value, attempt: value, lastAttempt: value },
    facts: {
      id: value,
      queue: value,
      worker: value,
      payload: value,
      maxAttempts: value,
      priority: value,
      runAt: value,
      createdAt: value,
      expiresAt: value,
      lastError: value,
    },
  },
  Lock: {
    pinned: { renew: async(1), release: async(0) },
    extension: { token: value, expiresAt: value },
    facts: { name: value, owner: value },
  },
  Outbox: {
    pinned: { enqueue: async(1, 2), runOnce: async(2) },
    extension: {
      run: sync(1, 2),
      getJob: async(1),
      cancel: async(1),
      stats: async(0),
      deadJobs: async(0, 1),
      requeue: async(1),
      purgeDead: async(0, 1),
      sweepExpired: async(0),
    },
    facts: { name: value },
  },
  TxHandle: {
    pinned: {
      enqueueTx: async(3),
      publishTx: async(2),
      publishWithKeyTx: async(3),
      notifyTx: async(1, 2),
      saveOffsetTx: async(3, 4),
      outboxEnqueueTx: async(3),
      commit: async(0),
      rollback: async(0),
    },
    extension: {
      connection: value,
      enqueueManyTx: async(3),
      publishManyTx: async(2),
      ackTx: async(1, 2),
      failTx: async(1, 3),
      retryTx: async(1, 2),
      cancelTx: async(2),
      assertLockTx: async(1, 2),
    },
    facts: {},
  },
} as const satisfies Readonly<Record<string, Columns>>;

/** The columns of one object. */
interface Columns {
  readonly pinned: Readonly<Record<string, Member>>;
  readonly extension: Readonly<Record<string, Member>>;
  readonly facts: Readonly<Record<string, Member>>;
}

type Listed<C extends Columns> = keyof C["pinned"] | keyof C["extension"] | keyof C["facts"];
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;

/** Every member of an interface is listed, and nothing else: each must be `true`. */
const LISTED: {
  readonly [Name in keyof typeof SURFACE]: Equal<
    Listed<(typeof SURFACE)[Name]>,
    Exclude<keyof Objects[Name], symbol>
  >;
} = {
  Store: true,
  Stream: true,
  EventReceiver: true,
  WakeReceiver: true,
  Queue: true,
  Job: true,
  Lock: true,
  Outbox: true,
  TxHandle: true,
};

interface Objects {
  Store: Store;
  Stream: Stream;
  EventReceiver: EventReceiver;
  WakeReceiver: WakeReceiver;
  Queue: Queue;
  Job: Job;
  Lock: Lock;
  Outbox: Outbox;
  TxHandle: TxHandle;
}

/** One of each, of a store in memory. */
async function openAll(): Promise<Objects> {
  const store = await openSqlite(":memory:");
  const [queue, stream] = [store.queue("jobs"), store.stream("orders")];
  await queue.enqueue(1);
  const [job, lock] = [await queue.claimOne("worker"), await store.tryLock("l", "owner", 60_000)];
  assert(job !== undefined && lock !== undefined);
  return {
    Job: job,
    Lock: lock,
    Queue: queue,
    Outbox: store.outbox("mail"),
    WakeReceiver: await store.listen("orders"),
    EventReceiver: await stream.subscribe("billing"),
    Stream: stream,
    TxHandle: await store.beginTx(),
    Store: store,
  };
}

function membersOf(name: keyof Objects): [string, Member][] {
  const { pinned, extension, facts }: Columns = SURFACE[name];
  return [pinned, extension, facts].flatMap((column) => Object.entries(column));
}

Deno.test("every member of the surface is there, and takes the arguments it should", async () => {
  const all = await openAll();
  for (const name of Object.keys(LISTED) as (keyof Objects)[]) {
    for (const [key, member] of membersOf(name)) {
      const what = `${name}.${key}`;
      assert(key in all[name], `${what} is missing`);
      const found: unknown = Reflect.get(all[name], key);
      assertEquals(typeof found === "function" ? "method" : "value", kindOf(member), what);
      if (member.kind === "value" || typeof found !== "function") continue;
      const { length } = found;
      assert(length >= member.least && length <= member.most, `${what} has ${length} parameters`);
    }
  }
  await all.Store.close();
});

Deno.test("what touches the database gives a promise, whatever it is called with", async () => {
  const all = await openAll();
  const pending: Promise<unknown>[] = [];
  for (const name of Object.keys(all) as (keyof Objects)[]) {
    for (const [key, member] of membersOf(name)) {
      if (member.kind === "value") continue;
      const method: unknown = Reflect.get(all[name], key);
      assert(typeof method === "function");
      // Without arguments, and with ones that no call takes: nothing may be thrown but as a rejection.
      for (const args of [[], [Symbol("x"), Symbol("y"), Symbol("z"), Symbol("z")]]) {
        let result: unknown;
        try {
          result = Reflect.apply(method, all[name], args);
        } catch (error) {
          assertEquals(member.kind, "sync", `${name}.${key} threw ${error}`);
        }
        if (result instanceof Promise) pending.push(result.catch(() => {}));
        if (result === undefined) continue;
        assertEquals(result instanceof Promise ? "async" : "sync", member.kind, `${name}.${key}`);
      }
    }
  }
  await all.Store.close();
  await Promise.all(pending);
});

Deno.test("stores, transactions, receivers and locks can be disposed, a job cannot", async () => {
  const all = await openAll();
  for (const name of ["Store", "TxHandle", "WakeReceiver", "EventReceiver", "Lock"] as const) {
    assertEquals(typeof all[name][Symbol.asyncDispose], "function", name);
  }
  for (const name of ["Job", "Queue", "Stream", "Outbox"] as const) {
    assertFalse(Symbol.asyncDispose in all[name] || Symbol.dispose in all[name], name);
  }
  for (const name of ["WakeReceiver", "EventReceiver"] as const) {
    assertEquals(typeof all[name][Symbol.asyncIterator], "function", name);
  }
  await all.Store.close();
});

Deno.test("disposing never throws, also twice and after the store is closed", async () => {
  const all = await openAll();
  const disposable = [all.TxHandle, all.WakeReceiver, all.EventReceiver, all.Lock, all.Store];
  for (const object of [...disposable, ...disposable]) await object[Symbol.asyncDispose]();
});

Deno.test("the module exports the contract, its errors and the reserved strings", () => {
  assertEquals(Object.keys(exports).sort(), [
    "AlkstoreError",
    "ClosedError",
    "CodecError",
    "DatabaseError",
    "InvalidNameError",
    "JobAbortError",
    "PayloadTooLargeError",
    "Reserved",
    "ReservedNameError",
  ]);
  assertEquals(Reserved, {
    PREFIX: "__alkstore_",
    LISTENER_RECONNECTED: "__alkstore_listener_reconnected__",
  });
});

Deno.test("every error has the code of its variant, its fields, its name and its base", () => {
  const cause = new Error("the driver said so");
  const cases = [
    [new PayloadTooLargeError("Cannot x", 7_999, 8_000), "PayloadTooLarge", { limit: 7_999 }],
    [new ReservedNameError("Cannot x", "__alkstore_x"), "ReservedName", {
      rejectedName: "__alkstore_x",
    }],
    [new InvalidNameError("Cannot x", "", "it is empty"), "InvalidName", { rejectedName: "" }],
    [new ClosedError("Cannot x: closed", { cause }), "Closed", { cause }],
    [new CodecError("Cannot x", "$.a", "a Date is not JSON", { cause }), "Codec", {
      path: "$.a",
      cause,
    }],
    [new DatabaseError("Cannot x: busy", { cause, retryable: true }), "Database", {
      retryable: true,
      outcome: "not-applied",
      cause,
    }],
    [new DatabaseError("Cannot x: lost", { outcome: "unknown" }), "Database", {
      retryable: false,
      outcome: "unknown",
    }],
  ] as const;
  for (const [error, code, fields] of cases) {
    assert(error instanceof AlkstoreError && error instanceof Error, code);
    assertEquals([error.code, error.name], [code, `${code}Error`]);
    assert(error.message.startsWith("Cannot x"), error.message);
    for (const [field, expected] of Object.entries(fields)) {
      assertStrictEquals(Reflect.get(error, field), expected, `${code}.${field}`);
    }
    assertEquals(`${error}`.split(":")[0], error.name);
    for (const [other] of cases) {
      assertEquals(other instanceof error.constructor, other.code === error.code);
    }
  }
});

Deno.test("the code of an error tells what it is where its class is of another copy", async () => {
  const copy: typeof import("../core/errors.ts") = await import("../core/errors.ts?copy");
  const error = new copy.ClosedError("Cannot x: closed");
  assertFalse(error instanceof ClosedError);
  assertEquals([error.code, error.name], ["Closed", "ClosedError"]);
});

Deno.test("mod.ts loads no engine and no driver", async () => {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "--no-config", "--no-lock", "--no-remote", "mod.ts"],
    cwd: new URL("..", import.meta.url),
    stderr: "null",
  }).output();
  const { modules } = JSON.parse(new TextDecoder().decode(stdout));
  const loaded: string[] = modules.map(({ specifier }: { specifier: string }) => specifier);
  assert(loaded.some((specifier) => specifier.endsWith("/mod.ts")));
  for (const specifier of loaded) {
    const isOurs = /\/(mod|core\/\w+)\.ts$/.test(specifier);
    assert(isOurs || /^node:(timers|async_hooks)$/.test(specifier), specifier);
  }
});

function kindOf(member: Member): string {
  return member.kind === "value" ? "value" : "method";
}
