import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { ClosedError, type Wake, type WakeReceiver } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { countListeners } from "./signals.ts";
import { soon, until } from "./wait.ts";

/** The receivers of wakes: waiting, giving up, closing. */
export function wakeReceivers(harness: Harness): void {
  waiting(harness);
  aborting(harness);
  closing(harness);
}

function waiting(harness: Harness): void {
  testSides(
    harness,
    "receiver.recv() serves concurrent calls in order",
    async ({ writer, reader }) => {
      const receiver = await reader.listen("orders");
      const served: number[] = [];
      const calls = [1, 2, 3].map(async (number) => {
        await receiver.recv();
        served.push(number);
      });
      for (const call of calls) {
        await writer.notify("orders");
        await soon(call);
      }
      assertEquals(served, [1, 2, 3]);
    },
  );

  testSides(
    harness,
    "receiver.tryRecv() gives what is pending at once, and nothing when idle",
    async ({ writer, reader }) => {
      const receiver = await reader.listen("orders");
      assertEquals(receiver.tryRecv(), undefined);
      await writer.notify("orders");
      const wake: Wake = await until(() => receiver.tryRecv());
      assertEquals(wake, { channel: "orders" });
    },
  );

  testSides(
    harness,
    "receiver.recvTimeout() gives a wake that comes in time",
    async ({ writer, reader }) => {
      const receiver = await reader.listen("orders");
      for (const timeout of [60_000, Infinity]) {
        const call = receiver.recvTimeout(timeout);
        await writer.notify("orders");
        assertEquals(await soon(call), { channel: "orders" });
      }
    },
  );

  testStore(harness, "receiver.recvTimeout() gives up with nothing", async (store) => {
    const receiver = await store.listen("orders");
    assertEquals(await soon(receiver.recvTimeout(0)), undefined);
    assertEquals(await soon(receiver.recvTimeout(20)), undefined);
    // The call that gave up is not in the way of the next one.
    const call = receiver.recv();
    await store.notify("orders");
    assertEquals(await soon(call), { channel: "orders" });
  });

  testStore(
    harness,
    "receiver.recvTimeout() refuses what is no duration",
    async (store) => {
      const receiver = await store.listen("orders");
      for (const timeout of [-1, NaN]) {
        await assertRejects(() => receiver.recvTimeout(timeout), RangeError, "timeout");
      }
      await assertRejects(() => receiver.recvTimeout("1" as never), TypeError, "timeout");
      await assertRejects(() => receiver.recv({ until: 1 } as never), TypeError, "until");
      await assertRejects(() => receiver.recv({ signal: {} as never }), TypeError, "signal");
    },
  );

  testSides(harness, "a receiver is iterated wake by wake", async ({ writer, reader }) => {
    const receiver = await reader.listen("orders");
    const wakes: Wake[] = [];
    const loop = (async () => {
      for await (const wake of receiver) {
        wakes.push(wake);
        if (wakes.length === 2) break;
        await writer.notify("orders");
      }
    })();
    await writer.notify("orders");
    await soon(loop);
    assertEquals(wakes, [{ channel: "orders" }, { channel: "orders" }]);
  });
}

function aborting(harness: Harness): void {
  const calls: [string, (receiver: WakeReceiver, signal: AbortSignal) => Promise<unknown>][] = [
    ["recv()", (receiver, signal) => receiver.recv({ signal })],
    ["recvTimeout()", (receiver, signal) => receiver.recvTimeout(60_000, { signal })],
  ];

  for (const [name, call] of calls) {
    testStore(
      harness,
      `receiver.${name} rejects with the reason of its aborted signal and leaves the line`,
      async (store) => {
        const receiver = await store.listen("orders");
        const controller = new AbortController();
        const aborted = call(receiver, controller.signal);
        const behind = receiver.recv();
        const reason = new Error("enough");
        controller.abort(reason);
        assertStrictEquals(await soon(assertRejects(() => aborted)), reason);
        await store.notify("orders");
        assertEquals(await soon(behind), { channel: "orders" });
      },
    );

    testStore(
      harness,
      `receiver.${name} with an aborted signal rejects and takes no wake`,
      async (store) => {
        const receiver = await store.listen("orders");
        await store.notify("orders");
        const reason = new Error("enough");
        const signal = AbortSignal.abort(reason);
        assertStrictEquals(await soon(assertRejects(() => call(receiver, signal))), reason);
        assertEquals(await soon(receiver.recv()), { channel: "orders" });
      },
    );
  }

  testStore(harness, "receiver.recv() leaves nothing on its signal", async (store) => {
    const receiver = await store.listen("orders");
    const controller = new AbortController();
    const left = countListeners(controller.signal);
    for (let round = 0; round < 3; round++) {
      const call = receiver.recv({ signal: controller.signal });
      await store.notify("orders");
      await soon(call);
    }
    assertEquals(left(), 0);
    const call = receiver.recv({ signal: controller.signal });
    controller.abort(new Error("enough"));
    await soon(assertRejects(() => call));
    assertEquals(left(), 0);
  });
}

function closing(harness: Harness): void {
  testStore(harness, "receiver.close() ends waiting calls and later ones", async (store) => {
    const receiver = await store.listen("orders");
    const calls = [receiver.recv(), receiver.recv()];
    const timed = assertRejects(() => receiver.recvTimeout(60_000), ClosedError, "closed");
    await receiver.close();
    assertEquals(await soon(Promise.all(calls)), [undefined, undefined]);
    await soon(timed);
    assertEquals(await soon(receiver.recv()), undefined);
    assertThrows(() => receiver.tryRecv(), ClosedError, "closed");
    await assertRejects(() => receiver.recvTimeout(0), ClosedError, "closed");
    await receiver.close();
  });

  testStore(harness, "a closed receiver gives no wake, not even a pending one", async (store) => {
    const receiver = await store.listen("orders");
    await store.notify("orders");
    await receiver[Symbol.asyncDispose]();
    assertEquals(await soon(receiver.recv()), undefined);
    assertThrows(() => receiver.tryRecv(), ClosedError);
  });

  testStore(harness, "receiver.close() ends iteration quietly", async (store) => {
    const receiver = await store.listen("orders");
    const wakes: Wake[] = [];
    const loop = (async () => {
      for await (const wake of receiver) {
        wakes.push(wake);
        await receiver.close();
      }
    })();
    await store.notify("orders");
    await soon(loop);
    assertEquals(wakes.length, 1);
  });

  testSides(
    harness,
    "receiver.close() leaves the other receivers of the channel alone",
    async ({ writer, reader }) => {
      const [closed, open] = [await reader.listen("orders"), await reader.listen("orders")];
      await closed.close();
      await writer.notify("orders");
      assertEquals(await soon(open.recv()), { channel: "orders" });
    },
  );

  testStore(harness, "store.close() ends its receivers and opens no more", async (store) => {
    const receiver = await store.listen("orders");
    const call = receiver.recv();
    await store.close();
    assertEquals(await soon(call), undefined);
    assertThrows(() => receiver.tryRecv(), ClosedError);
    await assertRejects(() => store.listen("orders"), ClosedError);
    await assertRejects(() => store.notify("orders"), ClosedError);
  });
}
