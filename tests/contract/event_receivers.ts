import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { delay } from "@std/async";
import { ClosedError, type EventReceiver, InvalidNameError } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { countListeners } from "./signals.ts";
import { soon } from "./wait.ts";

/** Receivers of events: waiting, giving up, closing. */
export function eventReceivers(harness: Harness): void {
  waiting(harness);
  closing(harness);
}

function waiting(harness: Harness): void {
  testSides(
    harness,
    "receiver.recv() serves concurrent calls in order, receiver.tryRecv() among them",
    async ({ writer, reader }) => {
      const receiver = await reader.stream("orders").subscribe("billing");
      const calls = [receiver.recv(), receiver.recv(), receiver.tryRecv()];
      const offsets = [];
      for (const payload of [1, 2, 3]) offsets.push(await writer.stream("orders").publish(payload));
      const events = await soon(Promise.all(calls));
      assertEquals(events.slice(0, 2).map((event) => event?.offset), offsets.slice(0, 2));
      assert(events[2] === undefined || events[2].offset === offsets[2]);
    },
  );

  testSides(
    harness,
    "receiver.recv() hands what is there to concurrent calls in order, past one that is aborted",
    async ({ writer, reader }) => {
      const receiver = await reader.stream("orders").subscribe("billing");
      const offsets = await writer.stream("orders").publishMany([{ payload: 1 }, { payload: 2 }]);
      const controller = new AbortController();
      const first = receiver.recv();
      const aborted = assertRejects(() => receiver.recv({ signal: controller.signal }));
      const last = receiver.recv();
      controller.abort(new Error("enough"));
      await soon(aborted);
      const events = await soon(Promise.all([first, last]));
      assertEquals(events.map((event) => event?.offset), offsets);
    },
  );

  testStore(harness, "receiver.tryRecv() gives nothing when there is nothing", async (store) => {
    const stream = store.stream("orders");
    const receiver = await stream.subscribe("billing");
    assertEquals(await receiver.tryRecv(), undefined);
    const offset = await stream.publish(1);
    assertEquals((await receiver.tryRecv())?.offset, offset);
    assertEquals(await receiver.tryRecv(), undefined);
  });

  testStore(
    harness,
    "receiver.recv() rejects with the reason of its aborted signal and takes no event",
    async (store) => {
      const stream = store.stream("orders");
      const receiver = await stream.subscribe("billing");
      const controllers = [new AbortController(), new AbortController(), new AbortController()];
      const reason = new Error("enough");
      const [first, second, third] = controllers.map(({ signal }) => receiver.recv({ signal }));
      // The one in the middle leaves the line, then the one in front.
      for (const [place, call] of [[1, second], [0, first]] as const) {
        controllers[place]!.abort(reason);
        assertStrictEquals(await soon(assertRejects(() => call!)), reason);
      }
      const offset = await stream.publish(1);
      assertEquals((await soon(third!))?.offset, offset);
    },
  );

  testStore(
    harness,
    "receiver.recv() with an aborted signal rejects and takes no event",
    async (store) => {
      const stream = store.stream("orders");
      const offset = await stream.publish(1);
      const receiver = await stream.subscribe("billing");
      const reason = new Error("enough");
      const signal = AbortSignal.abort(reason);
      assertStrictEquals(await soon(assertRejects(() => receiver.recv({ signal }))), reason);
      assertEquals((await soon(receiver.recv()))?.offset, offset);
    },
  );

  testStore(
    harness,
    "receiver.recv() hears of an abort in the turn of the call",
    async (store) => {
      const receiver = await store.stream("orders").subscribe("billing");
      const controller = new AbortController();
      const call = receiver.recv({ signal: controller.signal });
      const reason = new Error("enough");
      controller.abort(reason);
      assertStrictEquals(await soon(assertRejects(() => call), "the rejection"), reason);
    },
  );

  testStore(harness, "an event receiver leaves nothing on a signal", async (store) => {
    const stream = store.stream("orders");
    const receiver = await stream.subscribe("billing");
    const controller = new AbortController();
    const left = countListeners(controller.signal);
    for (let round = 0; round < 3; round++) {
      const call = receiver.recv({ signal: controller.signal });
      await stream.publish(round);
      await soon(call);
      assertEquals(left(), 0);
    }
    const calls = [1, 2].map(() => receiver.recv({ signal: controller.signal }));
    await delay(0);
    controller.abort(new Error("enough"));
    const ends = await soon(Promise.allSettled(calls));
    assertEquals(ends.map(({ status }) => status), ["rejected", "rejected"]);
    assertEquals(left(), 0);
  });
}

function closing(harness: Harness): void {
  testStore(harness, "a closed event receiver gives nothing more", async (store) => {
    const stream = store.stream("orders");
    const receiver = await stream.subscribe("billing");
    const calls = [receiver.recv(), receiver.recv()];
    await receiver.close();
    await stream.publish(1);
    assertEquals(await soon(Promise.all(calls)), [undefined, undefined]);
    assertEquals(await soon(receiver.recv()), undefined);
    await assertRejects(() => receiver.tryRecv(), ClosedError, "closed");
    await receiver.close();
  });

  testStore(harness, "a closed event receiver drops what it had read ahead", async (store) => {
    const stream = store.stream("orders");
    const offsets = await stream.publishMany(numbers(3));
    const receiver = await stream.subscribe("billing");
    assertEquals(await soon(collect(receiver, 1)), offsets.slice(0, 1));
    assertEquals(await soon(receiver.recv()), undefined);
    assertEquals(receiver.offset(), offsets[0]);
  });

  testStore(harness, "store.close() ends event receivers and opens no more", async (store) => {
    const stream = store.stream("orders");
    const receiver = await stream.subscribe("billing");
    const call = receiver.recv();
    await store.close();
    assertEquals(await soon(call), undefined);
    await assertRejects(() => receiver.tryRecv(), ClosedError);
    await assertRejects(() => receiver.saveOffset(), ClosedError);
    await assertRejects(() => stream.subscribe("billing"), ClosedError);
  });

  testStore(
    harness,
    "stream.subscribe() refuses what is no consumer, and takes a reserved prefix in one",
    async (store) => {
      const stream = store.stream("orders");
      await assertRejects(() => stream.subscribe(""), InvalidNameError);
      await assertRejects(() => stream.subscribe(7 as never), TypeError, "consumer");
      const receiver = await stream.subscribe("__alkstore_consumer");
      await stream.publish(1);
      assertEquals((await soon(receiver.recv()))?.payload, 1);
    },
  );
}

/** Iterates until `count` events were seen, then closes the receiver inside the loop. */
async function collect(receiver: EventReceiver<unknown>, count: number): Promise<number[]> {
  const seen: number[] = [];
  for await (const event of receiver) {
    seen.push(event.offset);
    if (seen.length === count) await receiver.close();
  }
  return seen;
}

function numbers(count: number): { payload: number }[] {
  return Array.from({ length: count }, (_, place) => ({ payload: place + 1 }));
}
