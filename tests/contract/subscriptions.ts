import { assertEquals, assertThrows } from "@std/assert";
import { delay } from "@std/async";
import { CodecError } from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { soon } from "./wait.ts";

/** Subscriptions: events one by one, and a checkpoint that moves only when told. */
export function subscriptions(harness: Harness): void {
  delivery(harness);
  checkpoints(harness);
  gaps(harness);
}

function delivery(harness: Harness): void {
  testSides(
    harness,
    "a receiver is woken by plain, transactional and joined publishes",
    async ({ writer, reader, database }) => {
      const receiver = await reader.stream("orders").subscribe("billing");
      const stream = writer.stream("orders");
      const ways: [string, () => Promise<unknown>][] = [
        ["publish", () => stream.publish("publish")],
        ["key", () => stream.publishWithKey("k", "key")],
        ["many", () => stream.publishMany([{ payload: "many" }])],
        ["tx", () => writer.transaction((tx) => tx.publishTx(stream, "tx"))],
        ["tx key", () => writer.transaction((tx) => tx.publishWithKeyTx(stream, "k", "tx key"))],
        ["joined", async () => {
          const foreign = await database.beginForeign();
          try {
            await (await writer.joinTx(foreign.connection)).publishTx("orders", "joined");
            await foreign.commit();
          } finally {
            await foreign.close();
          }
        }],
      ];
      for (const [payload, publish] of ways) {
        const call = receiver.recv();
        await publish();
        assertEquals((await soon(call, payload))?.payload, payload);
      }
    },
  );

  testSides(
    harness,
    "stream.subscribe() is armed when it resolves: the next publish is never missed",
    async ({ writer, reader }) => {
      for (let round = 0; round < 30; round++) {
        const receiver = await reader.stream(`round-${round}`).subscribe("billing");
        const call = receiver.recv();
        const offset = await writer.stream(`round-${round}`).publish(round);
        assertEquals((await soon(call))?.offset, offset);
        await receiver.close();
      }
    },
  );

  testSides(
    harness,
    "a receiver gets what was there, then what comes, once and ascending, over many pages",
    async ({ writer, reader }) => {
      const stream = writer.stream("orders");
      const offsets = await stream.publishMany(numbers(250));
      const receiver = await reader.stream("orders").subscribe("billing");
      const seen: number[] = [];
      const reading = (async () => {
        while (seen.length < 300) seen.push((await receiver.recv())!.offset);
      })();
      for (let round = 0; round < 10; round++) {
        offsets.push(...await stream.publishMany(numbers(5)));
      }
      await soon(reading);
      assertEquals(seen, offsets);
    },
  );

  testDatabase(
    harness,
    "a receiver gets each committed event once among writers that hold and roll back",
    async (database) => {
      const stores = [await database.open(), await database.open()];
      const receiver = await stores[0]!.stream("orders").subscribe("billing");
      const committed: number[] = [];
      const writers = Array.from({ length: 8 }, async (_, writer) => {
        for (let turn = 0; turn < 10; turn++) {
          const tx = await stores[(writer + turn) % 2]!.beginTx();
          const offset = await tx.publishTx("orders", [writer, turn]);
          await delay(Math.random() * 2);
          if (Math.random() < 0.3) {
            await tx.rollback();
          } else {
            await tx.commit();
            committed.push(offset);
          }
        }
      });
      const seen: number[] = [];
      const reading = (async () => {
        for await (const event of receiver) {
          if (event.payload === "end") break;
          seen.push(event.offset);
        }
      })();
      await soon(Promise.all(writers), "the end of the writers");
      await stores[1]!.stream("orders").publish("end");
      await soon(reading);
      assertEquals(seen, committed.toSorted((a, b) => a - b));
    },
  );

  testSides(
    harness,
    "a receiver gets no event of another stream and none that was rolled back",
    async ({ writer, reader }) => {
      const receiver = await reader.stream("orders").subscribe("billing");
      const call = receiver.recv();
      await writer.stream("Orders").publish("another stream");
      const tx = await writer.beginTx();
      await tx.publishTx("orders", "rolled back");
      await tx.rollback();
      const offset = await writer.stream("orders").publish("the next");
      const event = await soon(call);
      assertEquals([event?.offset, event?.payload], [offset, "the next"]);
      assertEquals(await receiver.tryRecv(), undefined);
    },
  );

  testSides(
    harness,
    "two receivers of one consumer both get everything",
    async ({ writer, reader }) => {
      const stream = writer.stream("orders");
      const offsets = [await stream.publish(1)];
      const receivers = [
        await stream.subscribe("billing"),
        await reader.stream("orders").subscribe("billing"),
      ];
      offsets.push(await stream.publish(2));
      for (const receiver of receivers) {
        const seen = [await soon(receiver.recv()), await soon(receiver.recv())];
        assertEquals(seen.map((event) => event?.offset), offsets);
        await receiver.saveOffset();
      }
    },
  );

  testStore(
    harness,
    "a poisoned event is received, and the one behind it too",
    async (store, database) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(3));
      await database.poisonEvent(offsets[1]!, "{not json");
      const receiver = await stream.subscribe("billing");
      await soon(receiver.recv());
      const poisoned = await soon(receiver.recv());
      assertEquals(poisoned?.offset, offsets[1]);
      assertThrows(() => poisoned?.payload, CodecError);
      assertEquals((await soon(receiver.recv()))?.payload, 3);
    },
  );
}

function checkpoints(harness: Harness): void {
  testStore(
    harness,
    "receiver.offset() is that of the last event handed out, at first the saved one",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(5));
      await stream.saveOffset("billing", offsets[0]!);
      const receiver = await stream.subscribe("billing");
      assertEquals(receiver.offset(), offsets[0]);
      assertEquals((await soon(receiver.recv()))?.offset, offsets[1]);
      assertEquals(receiver.offset(), offsets[1]);
      assertEquals((await receiver.tryRecv())?.offset, offsets[2]);
      assertEquals(receiver.offset(), offsets[2]);
      const read = await receiver.readSince(0, 10);
      assertEquals(read.map((event) => event.offset), offsets);
      assertEquals(receiver.offset(), offsets[2]);
      assertEquals((await receiver.tryRecv())?.offset, offsets[3]);
    },
  );

  testStore(
    harness,
    "receiver.saveOffset() saves the event handed out last, never one read ahead",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(5));
      const receiver = await stream.subscribe("billing");
      assertEquals(await receiver.saveOffset(), false);
      await soon(receiver.recv());
      await soon(receiver.recv());
      assertEquals(await receiver.saveOffset(), true);
      assertEquals(await receiver.saveOffset(), false);
      assertEquals(await stream.getOffset("billing"), offsets[1]);
      await receiver.close();
      const next = await stream.subscribe("billing");
      assertEquals((await soon(next.recv()))?.offset, offsets[2]);
    },
  );

  testStore(
    harness,
    "a receiver that saves nothing leaves no checkpoint: not when read, closed or disposed",
    async (store, database) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(3));
      for (const end of ["close", "dispose", "store"] as const) {
        const other = await database.open();
        const receiver = await other.stream("orders").subscribe("billing");
        for (const offset of offsets) assertEquals((await soon(receiver.recv()))?.offset, offset);
        if (end === "close") await receiver.close();
        if (end === "dispose") await receiver[Symbol.asyncDispose]();
        // Behind whatever closing might have written.
        await other.stream("log").publish(end);
        await other.close();
        assertEquals(await stream.getOffset("billing"), 0);
      }
      assertEquals((await stream.info()).consumers, []);
    },
  );

  testStore(
    harness,
    "receiver.saveOffset() does not move a consumer back that another receiver moved forward",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(2));
      const [slow, fast] = [await stream.subscribe("billing"), await stream.subscribe("billing")];
      await soon(slow.recv());
      await soon(fast.recv());
      await soon(fast.recv());
      assertEquals(await fast.saveOffset(), true);
      assertEquals(await slow.saveOffset(), false);
      assertEquals(await stream.getOffset("billing"), offsets[1]);
    },
  );
}

function gaps(harness: Harness): void {
  testStore(
    harness,
    "receiver.missed tells what was trimmed before its first event, and the rest is delivered",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(5));
      await stream.saveOffset("billing", offsets[0]!);
      await stream.trimTo(offsets[2]!);
      const receiver = await stream.subscribe("billing");
      assertEquals(receiver.missed, { from: offsets[0]! + 1, to: offsets[2]! });
      assertEquals((await soon(receiver.recv()))?.offset, offsets[3]);
    },
  );

  testStore(
    harness,
    "receiver.missed is empty for a consumer that has saved nothing or has seen what was trimmed",
    async (store) => {
      const stream = store.stream("orders");
      const offsets = await stream.publishMany(numbers(4));
      await stream.saveOffset("at the floor", offsets[1]!);
      await stream.saveOffset("above it", offsets[2]!);
      await stream.trimTo(offsets[1]!);
      for (const [consumer, next] of [["new", 2], ["at the floor", 2], ["above it", 3]] as const) {
        const receiver = await stream.subscribe(consumer);
        assertEquals((await soon(receiver.recv()))?.offset, offsets[next]);
        assertEquals(receiver.missed, undefined, consumer);
      }
    },
  );

  testStore(
    harness,
    "receiver.missed tells of events that were trimmed while it was open",
    async (store) => {
      const stream = store.stream("orders");
      const first = await stream.publish("read");
      await stream.saveOffset("billing", first);
      const receiver = await stream.subscribe("billing");
      assertEquals(receiver.missed, undefined);
      const trimmed = await stream.publish("trimmed");
      await stream.trimTo(trimmed);
      const last = await stream.publish("left");
      assertEquals((await soon(receiver.recv()))?.offset, last);
      assertEquals(receiver.missed, { from: first + 1, to: trimmed });
    },
  );
}

function numbers(count: number): { payload: number }[] {
  return Array.from({ length: count }, (_, place) => ({ payload: place + 1 }));
}
