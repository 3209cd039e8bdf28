import { assertEquals, assertExists, assertRejects } from "@std/assert";
import {
  CodecError,
  InvalidNameError,
  type JoinedTx,
  ReservedNameError,
  type Store,
} from "../../mod.ts";
import { type Harness, type TestDatabase, testStore } from "./harness.ts";
import { type ErrorClass, fromJavaScript } from "./refusals.ts";
import { claimed } from "./tx_calls.ts";

type Tx = JoinedTx<unknown>;
type Refused = readonly [ErrorClass, (tx: Tx) => Promise<unknown>];

/** What a transaction refuses leaves it usable, with everything before and after it. */
export function txRefusals(harness: Harness): void {
  const kinds: readonly (readonly [string, Stage])[] = [
    ["names", names],
    ["payloads", payloads],
    ["options", options],
    ["handles, jobs and locks of another store", foreigners],
    ["handles of another kind", strangers],
  ];
  for (const [kind, stage] of kinds) {
    testStore(harness, `${kind} that a tx refuses leave it usable`, async (store, database) => {
      const refused = await stage(store, database);
      const before = await database.countRows();
      const tx = await store.beginTx();
      await database.business.insert(tx.connection, "o-1");
      const first = await tx.enqueueTx("mail", {}, "before");
      for (const [error, call] of refused) {
        await assertRejects(() => call(tx), error as new () => Error, undefined, String(call));
      }
      const last = await tx.enqueueTx("mail", {}, "after");
      await tx.commit();
      assertEquals(await database.business.list(), ["o-1"]);
      for (const id of [first, last]) assertExists(await store.queue("mail").getJob(id));
      assertEquals(await database.countRows(), before + 2);
    });
  }
}

/** Sets the stage and gives the calls. */
type Stage = (store: Store<unknown>, database: TestDatabase) => Promise<Refused[]>;

const names: Stage = () => {
  const calls: ((tx: Tx, name: string) => Promise<unknown>)[] = [
    (tx, name) => tx.enqueueTx(name, {}, 1),
    (tx, name) => tx.enqueueManyTx(name, {}, [1]),
    (tx, name) => tx.outboxEnqueueTx(name, {}, 1),
    (tx, name) => tx.publishTx(name, 1),
    (tx, name) => tx.publishWithKeyTx(name, "k", 1),
    (tx, name) => tx.publishManyTx(name, [{ payload: 1 }]),
    (tx, name) => tx.notifyTx(name),
    (tx, name) => tx.saveOffsetTx(name, "billing", 0),
    (tx, name) => tx.cancelTx(name, 1),
  ];
  return Promise.resolve([
    ...calls.flatMap((call): Refused[] => [
      [InvalidNameError, (tx) => call(tx, "")],
      [ReservedNameError, (tx) => call(tx, "__alkstore_outbox:mail")],
      [TypeError, (tx) => call(tx, fromJavaScript(5))],
    ]),
    [InvalidNameError, (tx) => tx.publishWithKeyTx("orders", "", 1)],
    [InvalidNameError, (tx) => tx.publishManyTx("orders", [{ payload: 1, key: "" }])],
    [InvalidNameError, (tx) => tx.saveOffsetTx("orders", "", 0)],
  ]);
};

const payloads: Stage = () => {
  const date = fromJavaScript(new Date());
  return Promise.resolve([
    [CodecError, (tx) => tx.enqueueTx("mail", {}, date)],
    [CodecError, (tx) => tx.enqueueManyTx("mail", {}, [1, date])],
    [CodecError, (tx) => tx.outboxEnqueueTx("mail", {}, date)],
    [CodecError, (tx) => tx.publishTx("orders", date)],
    [CodecError, (tx) => tx.publishWithKeyTx("orders", "k", date)],
    [CodecError, (tx) => tx.publishManyTx("orders", [{ payload: 1 }, { payload: date }])],
    [CodecError, (tx) => tx.notifyTx("news", date)],
  ]);
};

const options: Stage = async (store) => {
  const { job } = await claimed(store);
  const lock = await store.tryLock("report", "host-1", 60_000);
  assertExists(lock);
  const maybe = { ifLost: fromJavaScript("maybe") };
  return [
    [RangeError, (tx) => tx.enqueueTx("mail", { delay: -1 }, 1)],
    [TypeError, (tx) => tx.enqueueTx("mail", { delay: 1, runAt: new Date() }, 1)],
    [RangeError, (tx) => tx.enqueueManyTx("mail", { maxAttempts: 0 }, [1])],
    [RangeError, (tx) => tx.outboxEnqueueTx("mail", { priority: 2 ** 31 }, 1)],
    [RangeError, (tx) => tx.saveOffsetTx("orders", "billing", 0.5)],
    [RangeError, (tx) => tx.saveOffsetTx("orders", "billing", 0, { from: -1 })],
    [TypeError, (tx) => tx.saveOffsetTx("orders", "billing", 0, maybe)],
    [RangeError, (tx) => tx.retryTx(job, { delay: -1 })],
    [TypeError, (tx) => tx.retryTx(job, maybe)],
    [TypeError, (tx) => tx.ackTx(job, maybe)],
    [TypeError, (tx) => tx.failTx(job, "broken", maybe)],
    [RangeError, (tx) => tx.cancelTx("mail", -1)],
    [TypeError, (tx) => tx.assertLockTx(lock, maybe)],
  ];
};

const foreigners: Stage = async (_store, database) => {
  const other = await database.open();
  const [queue, outbox, stream] = [
    other.queue("mail"),
    other.outbox("mail"),
    other.stream("orders"),
  ];
  const { job } = await claimed(other);
  const lock = await other.tryLock("report", "host-1", 60_000);
  assertExists(lock);
  return [
    [TypeError, (tx) => tx.enqueueTx(queue, {}, 1)],
    [TypeError, (tx) => tx.enqueueManyTx(queue, {}, [1])],
    [TypeError, (tx) => tx.outboxEnqueueTx(outbox, {}, 1)],
    [TypeError, (tx) => tx.publishTx(stream, 1)],
    [TypeError, (tx) => tx.publishWithKeyTx(stream, "k", 1)],
    [TypeError, (tx) => tx.publishManyTx(stream, [{ payload: 1 }])],
    [TypeError, (tx) => tx.saveOffsetTx(fromJavaScript(stream), "billing", 0)],
    [TypeError, (tx) => tx.cancelTx(fromJavaScript(queue), job.id)],
    [TypeError, (tx) => tx.ackTx(job)],
    [TypeError, (tx) => tx.retryTx(job)],
    [TypeError, (tx) => tx.failTx(job)],
    [TypeError, (tx) => tx.assertLockTx(lock)],
  ];
};

const strangers: Stage = async (store) => {
  const { job } = await claimed(store);
  return [
    [TypeError, (tx) => tx.enqueueTx(fromJavaScript(store.outbox("mail")), {}, 1)],
    [TypeError, (tx) => tx.outboxEnqueueTx(fromJavaScript(store.queue("mail")), {}, 1)],
    [TypeError, (tx) => tx.publishTx(fromJavaScript(store.queue("orders")), 1)],
    [TypeError, (tx) => tx.notifyTx(fromJavaScript(store.stream("news")))],
    [TypeError, (tx) => tx.ackTx(fromJavaScript({ id: job.id, queue: job.queue }))],
    [TypeError, (tx) => tx.ackTx(fromJavaScript(undefined))],
    [TypeError, (tx) => tx.assertLockTx(fromJavaScript({ name: "report", token: 1 }))],
  ];
};
