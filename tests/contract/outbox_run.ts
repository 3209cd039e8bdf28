import { assertEquals, assertInstanceOf } from "@std/assert";
import { JobAbortError } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { soon, until } from "./wait.ts";

/** The loop of an outbox: woken, concurrent, stopped. */
export function outboxRun(harness: Harness): void {
  testSides(
    harness,
    "outbox.run() delivers what was there, then what plain, tx and joined enqueues bring",
    async ({ writer, reader, database }) => {
      const mail = writer.outbox<string>("mail");
      const delivered: string[] = [];
      await mail.enqueue("before");
      reader.outbox<string>("mail").run((payload) => void delivered.push(payload));
      await until(() => delivered.length === 1);
      await mail.enqueue("plain");
      await until(() => delivered.length === 2);
      await writer.transaction((tx) => tx.outboxEnqueueTx(mail, {}, "tx"));
      await until(() => delivered.length === 3);
      const foreign = await database.beginForeign();
      try {
        await (await writer.joinTx(foreign.connection)).outboxEnqueueTx("mail", {}, "joined");
        await foreign.commit();
      } finally {
        await foreign.close();
      }
      await until(() => delivered.length === 4);
      assertEquals(delivered, ["before", "plain", "tx", "joined"]);
      await until(async () => (await mail.stats()).claimed === 0);
    },
  );

  testStore(
    harness,
    "outbox.run() delivers as many messages at once as it is told, and goes on past failures",
    async (store) => {
      const mail = store.outbox<number>("mail");
      for (let number = 0; number < 6; number++) await mail.enqueue(number);
      let [running, most] = [0, 0];
      const delivered: number[] = [];
      mail.run(async (payload, { signal, attempt }) => {
        most = Math.max(most, ++running);
        // Nobody ends before three have begun.
        await until(() => most === 3);
        running--;
        assertEquals([signal.aborted, attempt], [false, 1]);
        if (payload === 1) throw new Error("the mail server is down");
        delivered.push(payload);
      }, { concurrency: 3, worker: "mailer" });
      await until(async () => {
        const { ready, claimed } = await mail.stats();
        return ready + claimed === 0;
      });
      assertEquals(most, 3);
      assertEquals(delivered.toSorted(), [0, 2, 3, 4, 5]);
      assertEquals((await mail.stats()).scheduled, 1);
    },
  );

  for (const way of ["handle.stop()", "its signal"]) {
    testStore(
      harness,
      `outbox.run() ended by ${way} finishes the delivery that runs and takes no other`,
      async (store) => {
        const mail = store.outbox<string>("mail");
        const ids = [await mail.enqueue("first"), await mail.enqueue("second")];
        const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const controller = new AbortController();
        const delivered: string[] = [];
        const handle = mail.run(async (payload) => {
          started.resolve();
          await gate.promise;
          delivered.push(payload);
        }, { signal: controller.signal });
        await soon(started.promise);
        if (way === "handle.stop()") void handle.stop();
        else controller.abort();
        gate.resolve();
        await soon(handle.done);
        assertEquals(delivered, ["first"]);
        assertEquals(await mail.getJob(ids[0]!), undefined);
        const left = await mail.getJob(ids[1]!);
        assertEquals([left?.state, left?.attempts], ["ready", 0]);
      },
    );
  }

  testStore(
    harness,
    "handle.stop() of outbox.run() gives a message back whose delivery does not end",
    async (store) => {
      const mail = store.outbox("mail");
      const id = await mail.enqueue("hello");
      const reason = Promise.withResolvers<unknown>();
      const started = Promise.withResolvers<void>();
      const handle = mail.run(async (_payload, { signal }) => {
        signal.addEventListener("abort", () => reason.resolve(signal.reason));
        started.resolve();
        await reason.promise;
      });
      await soon(started.promise);
      await soon(handle.stop({ drain: 10 }));
      const error = await soon(reason.promise);
      assertInstanceOf(error, JobAbortError);
      assertEquals(error.reason, "shutdown");
      const job = await mail.getJob(id);
      assertEquals([job?.state, job?.attempts], ["ready", 0]);
      let attempt = 0;
      await mail.runOnce("mailer", (_payload, context) => attempt = context.attempt);
      assertEquals([attempt, await mail.getJob(id)], [1, undefined]);
    },
  );
}
