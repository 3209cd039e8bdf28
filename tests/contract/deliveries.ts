import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import {
  ClosedError,
  DatabaseError,
  type DeliveryContext,
  InvalidNameError,
  JobAbortError,
  type Store,
  type StoreEvent,
} from "../../mod.ts";
import { type Harness, testDatabase, testStore } from "./harness.ts";
import { testSides } from "./sides.ts";
import { soon, until } from "./wait.ts";

/** Deliveries of an outbox with `runOnce`: one message, what is known of it and what fails. */
export function deliveries(harness: Harness): void {
  once(harness);
  failures(harness);
  losses(harness);
}

function once(harness: Harness): void {
  testStore(
    harness,
    "outbox.runOnce() delivers one message and says whether there was one",
    async (store) => {
      const mail = store.outbox<string>("mail");
      const delivered: string[] = [];
      const deliver = (payload: string) => void delivered.push(payload);
      assertEquals(await mail.runOnce("mailer", deliver), false);
      const ids = [await mail.enqueue("first"), await mail.enqueue("second")];
      assertEquals(await mail.runOnce("mailer", deliver), true);
      assertEquals(delivered, ["first"]);
      assertEquals(await mail.getJob(ids[0]!), undefined);
      assertEquals((await mail.getJob(ids[1]!))?.state, "ready");
      assertEquals(await mail.runOnce("mailer", async (payload) => await deliver(payload)), true);
      assertEquals(await mail.runOnce("mailer", deliver), false);
      assertEquals(delivered, ["first", "second"]);
    },
  );

  testStore(
    harness,
    "outbox.runOnce() tells a delivery its id, attempt and signal, and nothing else",
    async (store) => {
      const mail = store.outbox<{ to: string }>("mail");
      const id = await mail.enqueue({ to: "a@example.org" });
      const contexts: DeliveryContext[] = [];
      await mail.runOnce("mailer", async (payload, given) => {
        contexts.push(given);
        assertEquals(payload, { to: "a@example.org" });
        const job = await mail.getJob(given.id);
        assertEquals([job?.state, job?.worker, job?.attempts], ["claimed", "mailer", 1]);
      });
      const [context] = contexts;
      assert(context !== undefined);
      assertEquals(Object.keys(context).toSorted(), ["attempt", "id", "lastAttempt", "signal"]);
      assertEquals([context.id, context.attempt, context.lastAttempt], [id, 1, false]);
      assert(context.signal instanceof AbortSignal);
      assertEquals(context.signal.aborted, false);
    },
  );

  testStore(
    harness,
    "outbox.runOnce() resolves when its delivery has ended and its message is gone",
    async (store) => {
      const mail = store.outbox("mail");
      const id = await mail.enqueue("hello");
      const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const happened: string[] = [];
      const running = mail.runOnce("mailer", async () => {
        started.resolve();
        await gate.promise;
        happened.push("delivered");
      }).then(() => happened.push("resolved"));
      await soon(started.promise);
      // While it runs nobody else gets the message.
      assertEquals(await mail.runOnce("mailer", () => {}), false);
      gate.resolve();
      await soon(running);
      assertEquals(happened, ["delivered", "resolved"]);
      assertEquals(await mail.getJob(id), undefined);
    },
  );

  testStore(
    harness,
    "outbox.runOnce() refuses a worker or a delivery that is none, and a closed store",
    async (store) => {
      const mail = store.outbox("mail");
      const id = await mail.enqueue("hello");
      await assertRejects(() => mail.runOnce("", () => {}), InvalidNameError);
      await assertRejects(() => mail.runOnce(7 as never, () => {}), TypeError, "worker");
      await assertRejects(() => mail.runOnce("mailer", "x" as never), TypeError, "deliver");
      assertEquals((await mail.getJob(id))?.state, "ready");
      await store.close();
      await assertRejects(() => mail.runOnce("mailer", () => {}), ClosedError);
    },
  );

  // Where one transaction keeps every other write waiting, a call can be made to fail.
  if (!harness.traits.concurrentTransactions) {
    testStore(
      harness,
      "outbox.runOnce() rejects with the DatabaseError of its claim, and of its ack",
      async (store, database) => {
        const mail = store.outbox("mail");
        const id = await mail.enqueue("hello");
        let foreign = await database.beginForeign();
        const claiming = await assertRejects(() => mail.runOnce("m", () => {}), DatabaseError);
        await foreign.close();
        assertEquals(claiming.retryable, true);
        assertEquals((await mail.getJob(id))?.attempts, 0);
        const acking = await assertRejects(() =>
          mail.runOnce("mailer", async () => {
            foreign = await database.beginForeign();
          }), DatabaseError);
        await foreign.close();
        assertEquals(acking.retryable, true);
        const job = await mail.getJob(id);
        assertEquals([job?.state, job?.attempts], ["claimed", 1]);
      },
      { writerTimeout: 50 },
    );
  }

  testDatabase(
    harness,
    "two workers deliver each message once, and others pass the one that fails",
    async (database) => {
      const stores = [await database.open(), await database.open()];
      const ids: number[] = [];
      for (let number = 0; number < 100; number++) {
        ids.push(await stores[0]!.outbox("mail").enqueue({ key: "o-1", number }));
      }
      const delivered: number[] = [];
      const workers = stores.map(async (store) => {
        const mail = store.outbox("mail");
        for (let turn = 0; turn < ids.length; turn++) {
          await mail.runOnce("mailer", (_payload, { id }) => {
            if (id === ids[2]) throw new Error("the third fails");
            delivered.push(id);
          });
        }
      });
      await Promise.all(workers);
      const others = ids.filter((id) => id !== ids[2]);
      assertEquals(delivered.toSorted((a, b) => a - b), others);
      const failed = await stores[0]!.outbox("mail").getJob(ids[2]!);
      assertEquals([failed?.state, failed?.attempts], ["scheduled", 1]);
    },
  );
}

function failures(harness: Harness): void {
  for (const [way, deliver] of [["throws", throwNow], ["rejects", throwLater]] as const) {
    testStore(
      harness,
      `a delivery that ${way} is retried on the stamped curve, and its error is kept`,
      async (store) => {
        const mail = store.outbox("mail");
        const id = await mail.enqueue("hello");
        const events = listenTo(store);
        assertEquals(await mail.runOnce("mailer", deliver), true);
        const job = await mail.getJob(id);
        assert(job !== undefined);
        assertEquals([job.state, job.attempts, job.reason], ["scheduled", 1, undefined]);
        assert(job.lastError?.includes("the mail server is down"));
        assertEquals(
          events.flatMap((event) => event.type === "retried" ? [[event.id, event.delay]] : []),
          [[id, 5_000]],
        );
        assert(job.runAt.getTime() - job.createdAt.getTime() >= 5_000);
        assertEquals(await mail.runOnce("mailer", () => {}), false);
      },
    );
  }

  testStore(
    harness,
    "a message whose last attempt fails is dead until it is requeued",
    async (store) => {
      const mail = store.outbox("mail");
      const id = await mail.enqueue("hello", { maxAttempts: 1 });
      const events = listenTo(store);
      let wasLast = false;
      const landed = await mail.runOnce("mailer", (_payload, { lastAttempt }) => {
        wasLast = lastAttempt;
        throwNow();
      });
      assertEquals([landed, wasLast], [true, true]);
      const [dead, ...others] = await mail.deadJobs();
      assertEquals(others, []);
      assertEquals([dead?.id, dead?.state, dead?.reason], [id, "dead", "exhausted"]);
      assert(dead?.lastError?.includes("the mail server is down"));
      assert(events.some((event) => event.type === "dead" && event.id === id));
      assertEquals(await mail.cancel(id), false);
      assertEquals(await mail.requeue(id), true);
      assertEquals(await mail.requeue(id), false);
      let attempt = 0;
      assertEquals(await mail.runOnce("mailer", (_, context) => attempt = context.attempt), true);
      assertEquals([attempt, await mail.getJob(id)], [1, undefined]);
    },
  );

  testStore(
    harness,
    "a message that expires before its delivery is dead, and the sweep finds it",
    async (store) => {
      const mail = store.outbox("mail");
      const id = await mail.enqueue("hello", { expires: 1 });
      await until(async () => (await mail.getJob(id))?.state === "dead");
      assertEquals(await mail.sweepExpired(), 1);
      assertEquals(await mail.sweepExpired(), 0);
      assertEquals((await mail.deadJobs()).map(({ reason }) => reason), ["expired"]);
      assertEquals(await mail.purgeDead(), 1);
      assertEquals(await mail.getJob(id), undefined);
    },
  );

  testStore(
    harness,
    "a poisoned message is a failed attempt and never reaches the delivery",
    async (store, database) => {
      const mail = store.outbox<string>("mail");
      const ids = [await mail.enqueue("first"), await mail.enqueue("second")];
      await database.poisonJob(ids[0]!, "{not json");
      const delivered: string[] = [];
      const deliver = (payload: string) => void delivered.push(payload);
      assertEquals(await mail.runOnce("mailer", deliver), true);
      assertEquals(delivered, []);
      const job = await mail.getJob(ids[0]!);
      assertEquals([job?.state, job?.attempts], ["scheduled", 1]);
      assert(job?.lastError?.includes("JSON"), job?.lastError);
      assertEquals(await mail.runOnce("mailer", deliver), true);
      assertEquals(delivered, ["second"]);
    },
  );
}

function losses(harness: Harness): void {
  testSides(
    harness,
    "a delivery whose message is cancelled is told by its signal",
    async ({ writer, reader }) => {
      const mail = reader.outbox("mail");
      const id = await mail.enqueue("hello");
      const reason = Promise.withResolvers<unknown>();
      const running = mail.runOnce("mailer", async (_payload, { signal }) => {
        signal.addEventListener("abort", () => reason.resolve(signal.reason));
        assertEquals(await writer.outbox("mail").cancel(id), true);
        await reason.promise;
      });
      const error = await soon(reason.promise);
      assertInstanceOf(error, JobAbortError);
      assertEquals([error.reason, error.jobId], ["cancelled", id]);
      assertEquals(await soon(running), true);
      assertEquals(await mail.getJob(id), undefined);
    },
  );

  for (const way of ["ends", "throws", "hears of it"]) {
    testSides(
      harness,
      `outbox.runOnce() is true and reports the loss when a cancelled delivery ${way}`,
      async ({ writer, reader }) => {
        const mail = reader.outbox("mail");
        const id = await mail.enqueue("hello");
        const events = listenTo(reader);
        const landed = await mail.runOnce("mailer", async (_payload, { signal }) => {
          await writer.outbox("mail").cancel(id);
          if (way === "hears of it") await until(() => signal.aborted);
          if (way === "throws") throwNow();
        });
        assertEquals(landed, true);
        assert(
          events.some((event) => event.type === "lease-lost" && event.id === id),
          `only ${events.map(({ type }) => type)} were reported`,
        );
        assertEquals(events.filter(({ type }) => type === "acked" || type === "retried"), []);
        assertEquals(await mail.getJob(id), undefined);
      },
    );
  }

  testStore(
    harness,
    "outbox.cancel() takes a message that waits, once, and no dead one",
    async (store, database) => {
      const mail = store.outbox("mail");
      const ids = [await mail.enqueue("ready"), await mail.enqueue("later", { delay: 60_000 })];
      const other = (await database.open()).outbox("mail");
      for (const id of ids) {
        assertEquals(await other.cancel(id), true);
        assertEquals(await mail.cancel(id), false);
      }
      assertEquals(await mail.runOnce("mailer", () => {}), false);
      const { ready, scheduled, claimed, dead } = await mail.stats();
      assertEquals([ready, scheduled, claimed, dead], [0, 0, 0, 0]);
    },
  );
}

function throwNow(): never {
  throw new Error("the mail server is down");
}

function throwLater(): Promise<never> {
  return Promise.reject(new Error("the mail server is down"));
}

/** Collects what the store reports from now on. */
function listenTo(store: Store<unknown>): StoreEvent[] {
  const events: StoreEvent[] = [];
  store.onEvent((event) => void events.push(event));
  return events;
}
