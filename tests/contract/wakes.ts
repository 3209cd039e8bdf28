import { assert, assertEquals, assertRejects } from "@std/assert";
import { CodecError, PayloadTooLargeError, Reserved, ReservedNameError } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { soon, until } from "./wait.ts";

/** Names that broke a quoting, a folding or a length limit somewhere (C12, C74). */
const ODD_NAMES = [
  "Orders",
  "orders",
  'a"b',
  "a'b",
  "a;drop",
  "日本語",
  "a b",
  "SELECT",
  "\\",
  "%",
  "__alkstor",
  "é",
  "e\u0301",
  "😀".repeat(200),
  "x".repeat(63),
  "x".repeat(64),
  "x".repeat(1_000),
];

/** Wakes: who is woken, when, and by what. */
export function wakes(harness: Harness): void {
  delivery(harness);
  transactions(harness);
  payloads(harness);
}

function delivery(harness: Harness): void {
  testSides(
    harness,
    "store.notify() wakes a receiver with the channel and nothing else",
    async ({ writer, reader }) => {
      const receiver = await reader.listen("orders");
      await writer.notify("orders", { id: 7 });
      assertEquals(await soon(receiver.recv()), { channel: "orders" });
    },
  );

  testSides(
    harness,
    "store.listen() is armed when it resolves: the next notify is never missed",
    async ({ writer, reader }) => {
      for (let round = 0; round < 30; round++) {
        const receiver = await reader.listen(`round-${round}`);
        await writer.notify(`round-${round}`);
        await soon(receiver.recv(), `the wake of round ${round}`);
        await receiver.close();
      }
    },
  );

  testSides(
    harness,
    "store.notify() wakes every receiver of its channel",
    async ({ writer, reader, database }) => {
      const third = await database.open();
      const receivers = [
        await writer.listen("orders"),
        await reader.listen("orders"),
        await reader.listen("orders"),
        await third.listen("orders"),
      ];
      await writer.notify("orders");
      for (const receiver of receivers) await soon(receiver.recv());
    },
  );

  testSides(
    harness,
    "store.notify() wakes exactly the receiver of a name, however odd the name is",
    async ({ writer, reader }) => {
      for (const names of [ODD_NAMES, ODD_NAMES.toReversed()]) {
        const receivers = [];
        for (const name of names) receivers.push(await reader.listen(name));
        for (const [place, name] of names.entries()) {
          await writer.notify(name);
          assertEquals(await soon(receivers[place]!.recv(), name), { channel: name });
          // Those before it were notified, and a wake may come twice.
          for (const other of receivers.slice(place + 1)) {
            assertEquals(other.tryRecv(), undefined, name);
          }
        }
        for (const receiver of receivers) await receiver.close();
      }
    },
  );

  testSides(
    harness,
    "a wake follows the last of many notifies",
    async ({ writer, reader }) => {
      const receiver = await reader.listen("orders");
      let written = 0;
      const writing = (async () => {
        for (let count = 1; count <= 200; count++) {
          written = count;
          await writer.notify("orders");
        }
      })();
      for (let seen = 0; seen < 200; seen = written) {
        await soon(receiver.recv(), `a wake after ${seen}`);
      }
      await writing;
    },
  );

  testSides(
    harness,
    "a wake follows notifies of many writers at once",
    async ({ writer, reader }) => {
      const receivers = await Promise.all(
        Array.from({ length: 50 }, (_, number) => reader.listen(`channel-${number}`)),
      );
      await Promise.all(receivers.map((_, number) => writer.notify(`channel-${number}`)));
      for (const receiver of receivers) await soon(receiver.recv());
    },
  );

  testStore(
    harness,
    "a receiver opened again after a gap misses wakes, a stream reader misses nothing",
    async (store, database) => {
      const other = await database.open();
      await (await store.listen("orders")).close();
      await (await store.stream("orders").subscribe("billing")).close();
      await other.notify("orders");
      const offset = await other.stream("orders").publish("while nobody listened");
      const [wakes, events] = [
        await store.listen("orders"),
        await store.stream("orders").subscribe("billing"),
      ];
      assertEquals((await soon(events.recv()))?.offset, offset);
      assertEquals(wakes.tryRecv(), undefined);
      await other.notify("orders");
      await soon(wakes.recv());
    },
  );

  testDatabase(
    harness,
    "two databases with the same names have nothing in common",
    async (database) => {
      const elsewhere = await harness.create();
      try {
        const [here, there] = [await database.open(), await elsewhere.open()];
        const handled: unknown[] = [];
        const worker = there.queue("orders").work((job) => handled.push(job.payload));
        const receiver = await there.stream("orders").subscribe("billing");
        await here.queue("orders").enqueue("here");
        await here.stream("orders").publish("here");
        assert(await here.tryLock("orders", "here", 60_000) !== undefined);
        await there.queue("orders").enqueue("there");
        await there.stream("orders").publish("there");
        assertEquals((await soon(receiver.recv()))?.payload, "there");
        await until(() => handled.length > 0);
        await worker.stop();
        assertEquals(handled, ["there"]);
        assertEquals((await here.queue("orders").stats()).ready, 1);
        assert(await there.tryLock("orders", "there", 60_000) !== undefined);
      } finally {
        await elsewhere[Symbol.asyncDispose]();
      }
    },
  );

  testStore(
    harness,
    "the channel of the reconnect wake can be neither listened to nor notified",
    async (store) => {
      const channel = Reserved.LISTENER_RECONNECTED;
      const tx = await store.beginTx();
      for (
        const call of [
          () => store.listen(channel),
          () => store.notify(channel),
          () => tx.notifyTx(channel),
        ]
      ) await assertRejects(call, ReservedNameError);
      await tx.commit();
    },
  );
}

function transactions(harness: Harness): void {
  testSides(
    harness,
    "tx.notifyTx() wakes nobody before the commit, and then the receiver",
    async ({ writer, reader }) => {
      const [receiver, other] = [await reader.listen("orders"), await reader.listen("other")];
      const tx = await writer.beginTx();
      await tx.notifyTx("orders", { id: 7 });
      if (harness.traits.concurrentTransactions) {
        await writer.notify("other");
        await soon(other.recv());
      } else {
        await tx.publishTx("log", "something else");
      }
      assertEquals(receiver.tryRecv(), undefined);
      await tx.commit();
      assertEquals(await soon(receiver.recv()), { channel: "orders" });
    },
  );

  for (const end of ["tx.rollback()", "leaving the block", "a lost offset"]) {
    testSides(
      harness,
      `tx.notifyTx() wakes nobody after ${end}`,
      async ({ writer, reader }) => {
        const [orders, other] = [await reader.listen("orders"), await reader.listen("other")];
        const tx = await writer.beginTx();
        await tx.notifyTx("orders");
        if (end === "tx.rollback()") {
          await tx.rollback();
        } else {
          if (end === "a lost offset") await tx.saveOffsetTx("log", "reader", 0, { from: 3 });
          await tx[Symbol.asyncDispose]();
        }
        // On the way the first one would have taken.
        const next = await writer.beginTx();
        await next.notifyTx("other");
        await next.commit();
        await soon(other.recv());
        assertEquals(orders.tryRecv(), undefined);
      },
    );
  }

  testSides(
    harness,
    "a joined tx.notifyTx() wakes with the caller's commit and not before",
    async ({ writer, reader, database }) => {
      const receiver = await reader.listen("orders");
      const foreign = await database.beginForeign();
      try {
        const tx = await writer.joinTx(foreign.connection);
        await tx.notifyTx("orders");
        await tx.publishTx("log", "something else");
        assertEquals(receiver.tryRecv(), undefined);
        await foreign.commit();
        assertEquals(await soon(receiver.recv()), { channel: "orders" });
      } finally {
        await foreign.close();
      }
    },
  );

  testSides(
    harness,
    "a joined tx.notifyTx() wakes nobody after the caller's rollback",
    async ({ writer, reader, database }) => {
      const [orders, other] = [await reader.listen("orders"), await reader.listen("other")];
      for (const [channel, end] of [["orders", "rollback"], ["other", "commit"]] as const) {
        const foreign = await database.beginForeign();
        try {
          await (await writer.joinTx(foreign.connection)).notifyTx(channel);
          await foreign[end]();
        } finally {
          await foreign.close();
        }
      }
      await soon(other.recv());
      assertEquals(orders.tryRecv(), undefined);
    },
  );
}

function payloads(harness: Harness): void {
  const { notifyLimit } = harness.traits;

  testStore(
    harness,
    "a notify payload that is not JSON is a CodecError, and nothing is written",
    async (store, database) => {
      const rows = await database.countRows();
      const tx = await store.beginTx();
      for (const call of [store.notify.bind(store), tx.notifyTx.bind(tx)]) {
        const error = await assertRejects(
          () => call("orders", { items: [{ at: 1 }, { at: NaN }] }),
          CodecError,
        );
        assertEquals(error.path, "$.items[1].at");
      }
      await tx.commit();
      assertEquals(await database.countRows(), rows);
    },
  );

  testStore(
    harness,
    "a notify payload of the largest size wakes",
    async (store) => {
      const receiver = await store.listen("orders");
      const payload = textOf(notifyLimit ?? 1_000_000);
      await store.notify("orders", payload);
      await soon(receiver.recv());
      await store.transaction((tx) => tx.notifyTx("orders", payload));
      await soon(receiver.recv());
    },
  );

  if (notifyLimit === undefined) return;
  testStore(
    harness,
    "a notify payload above the limit in bytes is a PayloadTooLargeError, and nothing is sent",
    async (store, { business }) => {
      const [orders, other] = [await store.listen("orders"), await store.listen("other")];
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      for (const call of [store.notify.bind(store), tx.notifyTx.bind(tx)]) {
        const error = await assertRejects(
          () => call("orders", textOf(notifyLimit + 1)),
          PayloadTooLargeError,
          "outbox",
        );
        assertEquals(error.limit, notifyLimit);
      }
      await tx.notifyTx("other");
      await tx.commit();
      await soon(other.recv());
      assertEquals(orders.tryRecv(), undefined);
      assertEquals(await business.list(), ["o-1"]);
    },
  );
}

/** A text whose JSON has `bytes` bytes of UTF-8 and about half as many characters. */
function textOf(bytes: number): string {
  return "é".repeat((bytes - 2) >> 1) + "x".repeat(bytes % 2);
}
