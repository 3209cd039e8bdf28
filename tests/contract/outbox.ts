import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  type AlkstoreError,
  CodecError,
  type DeliveryContext,
  InvalidNameError,
  type JobSnapshot,
  type Outbox,
  ReservedNameError,
} from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { until } from "./wait.ts";

/** The outbox: how a message gets in, with which stamps, and past whom it cannot. */
export function outbox(harness: Harness): void {
  transactional(harness);
  stamps(harness);
  names(harness);
}

function transactional(harness: Harness): void {
  testStore(
    harness,
    "tx.outboxEnqueueTx() drops the backing job with the business write on rollback",
    async (store, { business }) => {
      const mail = store.outbox<string>("mail");
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      const id = await tx.outboxEnqueueTx(mail, {}, "hello");
      await tx.rollback();
      assertEquals(await business.list(), []);
      assertEquals(await mail.getJob(id), undefined);
      assertEquals(await mail.runOnce("mailer", () => {}), false);
    },
  );

  testStore(
    harness,
    "tx.outboxEnqueueTx() makes a message deliverable with the commit and not before",
    async (store, database) => {
      const mail = store.outbox<string>("mail");
      const other = (await database.open()).outbox<string>("mail");
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      const id = await tx.outboxEnqueueTx(mail, {}, "hello");
      assertEquals(await other.getJob(id), undefined);
      assertEquals(await mail.getJob(id), undefined);
      assertEquals((await other.stats()).ready, 0);
      if (harness.traits.concurrentTransactions) {
        assertEquals(await other.runOnce("mailer", () => {}), false);
      }
      await tx.commit();
      const delivered: unknown[] = [];
      const deliver = (payload: string, { id }: DeliveryContext) => delivered.push([id, payload]);
      assertEquals(await other.runOnce("mailer", deliver), true);
      assertEquals(delivered, [[id, "hello"]]);
      assertEquals(await mail.getJob(id), undefined);
      assertEquals(await mail.runOnce("mailer", deliver), false);
      assertEquals(await database.business.list(), ["o-1"]);
    },
  );

  testStore(
    harness,
    "a joined tx.outboxEnqueueTx() commits and rolls back with the caller",
    async (store, database) => {
      for (const [end, count] of [["rollback", 0], ["commit", 1]] as const) {
        const foreign = await database.beginForeign();
        try {
          await database.business.insert(foreign.connection, end);
          const tx = await store.joinTx(foreign.connection);
          await tx.outboxEnqueueTx("mail", {}, end);
          await foreign[end]();
        } finally {
          await foreign.close();
        }
        assertEquals((await store.outbox("mail").stats()).ready, count);
      }
      assertEquals(await database.business.list(), ["commit"]);
    },
  );

  testStore(
    harness,
    "a message that cannot be stored is refused on both paths, and the tx stays usable",
    async (store, { business }) => {
      const mail = store.outbox("mail");
      const tx = await store.beginTx();
      await business.insert(tx.connection, "o-1");
      for (
        const enqueue of [
          mail.enqueue.bind(mail),
          (payload: number, opts = {}) => tx.outboxEnqueueTx("mail", opts, payload),
        ]
      ) {
        assertEquals((await assertRejects(() => enqueue(NaN), CodecError)).path, "$");
        await assertRejects(() => enqueue(1, { maxAttempts: 0 }), RangeError, "maxAttempts");
        await assertRejects(() => enqueue(1, { delay: -1 }), RangeError, "delay");
        await assertRejects(() => enqueue(1, { delai: 1 } as never), TypeError, "delai");
      }
      await tx.outboxEnqueueTx("mail", {}, 1);
      await tx.commit();
      assertEquals((await mail.stats()).ready, 1);
      assertEquals(await business.list(), ["o-1"]);
    },
  );
}

function stamps(harness: Harness): void {
  testStore(
    harness,
    "outbox.getJob() shows the same stamped options however the message was enqueued",
    async (store) => {
      const mail = store.outbox<string>("mail");
      const tx = await store.beginTx();
      const ids = [
        await tx.outboxEnqueueTx(mail, {}, "by handle"),
        await tx.outboxEnqueueTx("mail", {}, "by name"),
      ];
      await tx.commit();
      ids.push(await mail.enqueue("plain"));
      for (const id of ids) {
        const job = await mail.getJob(id);
        assertEquals(stampOf(job), {
          queue: "mail",
          state: "ready",
          priority: 0,
          attempts: 0,
          visibility: 60_000,
          maxAttempts: 5,
          backoff: { kind: "exponential", base: 5_000, cap: 3_600_000, jitter: 0 },
          expiresAt: undefined,
          lastError: undefined,
        });
      }
    },
  );

  testStore(
    harness,
    "outbox.getJob() shows the options of the enqueue over those of the outbox",
    async (store) => {
      const mail = store.outbox<string>("mail");
      const opts = { delay: 60_000, priority: 7, maxAttempts: 2, expires: 90_000 };
      const ids = [
        await mail.enqueue("plain", opts),
        await store.transaction((tx) => tx.outboxEnqueueTx(mail, opts, "tx")),
      ];
      for (const id of ids) {
        const job = await mail.getJob(id);
        assert(job !== undefined);
        const { state, priority, maxAttempts, visibility, createdAt, runAt, expiresAt } = job;
        assertEquals([state, priority, maxAttempts, visibility], ["scheduled", 7, 2, 60_000]);
        assertEquals(runAt.getTime() - createdAt.getTime(), 60_000);
        assertEquals(expiresAt!.getTime() - createdAt.getTime(), 90_000);
      }
      assertEquals(await mail.runOnce("mailer", () => {}), false);
      assertEquals((await mail.stats()).scheduled, 2);
    },
  );

  testStore(
    harness,
    "an outbox hands over messages by priority, then by id",
    async (store) => {
      const mail = store.outbox<string>("mail");
      for (const [payload, priority] of [["c", 0], ["d", 0], ["a", 9], ["b", 1]] as const) {
        await mail.enqueue(payload, { priority });
      }
      assertEquals(await deliverAll(mail), ["a", "b", "c", "d"]);
    },
  );
}

function names(harness: Harness): void {
  testStore(
    harness,
    "an outbox name that is none is refused alike by store.outbox() and tx.outboxEnqueueTx()",
    async (store, database) => {
      const rows = await database.countRows();
      const tx = await store.beginTx();
      for (const name of ["", "a\0b", "\ud800", "x".repeat(1_001), "é".repeat(501)]) {
        const plain = assertThrows(() => store.outbox(name), InvalidNameError);
        const inTx = await assertRejects(() => tx.outboxEnqueueTx(name, {}, 1), InvalidNameError);
        assertEquals(factsOf(inTx), factsOf(plain));
        assertEquals(plain.rejectedName, name);
      }
      for (const name of ["__alkstore_", "__alkstore_x", "__alkstore_outbox:mail"]) {
        const plain = assertThrows(() => store.outbox(name), ReservedNameError);
        const inTx = await assertRejects(() => tx.outboxEnqueueTx(name, {}, 1), ReservedNameError);
        assertEquals(factsOf(inTx), factsOf(plain));
        assertEquals(plain.rejectedName, name);
      }
      assertThrows(() => store.outbox(7 as never), TypeError);
      await assertRejects(() => tx.outboxEnqueueTx(7 as never, {}, 1), TypeError);
      await tx.commit();
      assertEquals(await database.countRows(), rows);
    },
  );

  testStore(
    harness,
    "the backing queue is reached by nothing but the outbox",
    async (store) => {
      const mail = store.outbox<string>("mail");
      const id = await mail.enqueue("hello");
      const backing = "__alkstore_outbox:mail";
      assertThrows(() => store.queue(backing), ReservedNameError);
      const tx = await store.beginTx();
      const calls = [
        () => tx.enqueueTx(backing, {}, 1),
        () => tx.enqueueManyTx(backing, {}, [1]),
        () => tx.cancelTx(backing, id),
      ];
      for (const call of calls) {
        assertEquals((await assertRejects(call, ReservedNameError)).rejectedName, backing);
      }
      await tx.commit();
      assertEquals((await mail.stats()).ready, 1);
    },
  );

  testStore(
    harness,
    "an outbox and a queue of the same name do not mix",
    async (store) => {
      const [mail, queue] = [store.outbox<string>("mail"), store.queue<string>("mail")];
      const [message, job] = [await mail.enqueue("message"), await queue.enqueue("job")];
      assertEquals(await queue.getJob(message), undefined);
      assertEquals(await mail.getJob(job), undefined);
      assertEquals(await queue.cancel(message), false);
      assertEquals(await mail.cancel(job), false);
      assertEquals([(await mail.stats()).ready, (await queue.stats()).ready], [1, 1]);
      const claimed = await queue.claimBatch("worker", 10);
      assertEquals(claimed.map(({ payload }) => payload), ["job"]);
      assertEquals(await deliverAll(mail), ["message"]);
    },
  );

  testStore(
    harness,
    "an outbox takes its name verbatim",
    async (store) => {
      const names = ["mail", "Mail", "mail:x", "outbox:mail", "日本語", 'a"b', "x".repeat(1_000)];
      for (const name of names) {
        await store.outbox(name).enqueue(name);
        await store.transaction((tx) => tx.outboxEnqueueTx(name, {}, name));
      }
      for (const name of names) {
        assertEquals(await deliverAll(store.outbox(name)), [name, name]);
      }
    },
  );

  testStore(
    harness,
    "tx.outboxEnqueueTx() refuses a handle that is no outbox of this store",
    async (store, database) => {
      const other = await database.open();
      const tx = await store.beginTx();
      for (const handle of [other.outbox("mail"), store.queue("mail"), store.stream("mail")]) {
        await assertRejects(() => tx.outboxEnqueueTx(handle as never, {}, 1), TypeError);
      }
      await assertRejects(() => tx.enqueueTx(store.outbox("mail") as never, {}, 1), TypeError);
      await tx.outboxEnqueueTx(store.outbox<number>("mail"), {}, 1);
      await tx.commit();
      await until(async () => (await other.outbox("mail").stats()).ready === 1);
    },
  );
}

/** Delivers what is there. */
async function deliverAll<T>(outbox: Outbox<never, T>): Promise<T[]> {
  const delivered: T[] = [];
  const deliver = (payload: T) => delivered.push(payload);
  // So many never are there.
  for (let turn = 0; turn < 100 && await outbox.runOnce("mailer", deliver); turn++);
  return delivered;
}

/** What is stamped on a message, without what differs from one to the next. */
function stampOf(job: JobSnapshot<unknown> | undefined): unknown {
  assert(job !== undefined);
  const { queue, state, priority, attempts, visibility, maxAttempts, backoff } = job;
  const { expiresAt, lastError } = job;
  return {
    queue,
    state,
    priority,
    attempts,
    visibility,
    maxAttempts,
    backoff,
    expiresAt,
    lastError,
  };
}

function factsOf(error: AlkstoreError & { rejectedName: string }): unknown {
  return { class: error.constructor, code: error.code, rejectedName: error.rejectedName };
}
