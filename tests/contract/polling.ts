import { assert, assertEquals } from "@std/assert";
import { type Harness, type OpenOptions, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { soon, until } from "./wait.ts";

/** Nobody is told anything: the store looks for itself. */
const POLLING: OpenOptions = { push: false, poll: { min: 10, max: 20 } };

/** Stores that poll, and what idle waiters cost either way. */
export function polling(harness: Harness): void {
  testStore(
    harness,
    "a store that polls wakes each receiver every poll interval and says that it polls",
    async (store) => {
      const receivers = [await store.listen("orders"), await store.listen("mail")];
      for (let round = 0; round < 3; round++) {
        for (const receiver of receivers) await soon(receiver.recv());
      }
      const { wake, wakeReason } = await store.status();
      assertEquals(wake, "poll");
      assert(wakeReason);
    },
    POLLING,
  );

  testSides(
    harness,
    "a store that polls receives wakes, events, jobs and messages",
    async ({ writer, reader, database }) => {
      const received: unknown[] = [];
      const note = (value: unknown) => void received.push(value);
      const wake = await reader.listen("w");
      const events = await reader.stream("s").subscribe("reader");
      reader.queue("q").work((job) => note(job.payload));
      reader.outbox("o").run((payload) => note(payload));
      reader.stream("s").process("projection", async (event, tx) => {
        await database.business.insert(tx.connection, String(event.payload));
      });
      await writer.notify("w");
      assertEquals(await soon(wake.recv()), { channel: "w" });
      await writer.transaction(async (tx) => {
        await tx.publishTx("s", "event");
        await tx.enqueueTx("q", { delay: 40 }, "job");
        await tx.outboxEnqueueTx("o", {}, "message");
      });
      assertEquals((await soon(events.recv()))?.payload, "event");
      await until(() => received.length === 2);
      assertEquals(received.toSorted(), ["job", "message"]);
      assertEquals(await until(async () => (await database.business.list())[0]), "event");
    },
    POLLING,
  );

  for (const [way, options] of [["is told", {}], ["polls", POLLING]] as const) {
    testStore(
      harness,
      `a store that ${way} works 200 idle queues and finds the job of each`,
      async (store, database) => {
        const other = await database.open();
        const handled = new Set<string>();
        const names = Array.from({ length: 200 }, (_, number) => `queue-${number}`);
        for (const name of names) store.queue(name).work((job) => void handled.add(job.queue));
        await other.queue("queue-137").enqueue("the first job");
        await until(() => handled.size > 0);
        assertEquals([...handled], ["queue-137"]);
        await other.transaction(async (tx) => {
          for (const name of names) await tx.enqueueTx(name, {}, "a job");
        });
        await until(() => handled.size === names.length);
      },
      options,
    );
  }
}
