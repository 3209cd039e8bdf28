/** Every call that takes a name or a label. */

import type { Queue, Store, Stream, TxHandle } from "../../mod.ts";

/** Where a test calls from. */
export interface Scene {
  readonly store: Store<unknown>;
  readonly queue: Queue;
  readonly stream: Stream;
  readonly tx: TxHandle<unknown>;
}

/** A call that takes a name. */
export interface Door {
  readonly call: string;
  readonly kind: string;
  /** What its messages start with. */
  readonly says: string;
  readonly throws?: boolean;
  /** Nothing may be passed in place of the name. */
  readonly isOptional?: boolean;
  readonly open: (scene: Scene, name: string) => unknown;
}

/** Calls that take a name of one of the five kinds. */
export const NAME_DOORS: readonly Door[] = [
  {
    call: "store.queue()",
    kind: "queue",
    says: "Cannot open queue",
    throws: true,
    open: ({ store }, name) => store.queue(name),
  },
  {
    call: "store.stream()",
    kind: "stream",
    says: "Cannot open stream",
    throws: true,
    open: ({ store }, name) => store.stream(name),
  },
  {
    call: "store.outbox()",
    kind: "outbox",
    says: "Cannot open outbox",
    throws: true,
    open: ({ store }, name) => store.outbox(name),
  },
  {
    call: "store.notify()",
    kind: "channel",
    says: "Cannot notify",
    open: ({ store }, name) => store.notify(name, 1),
  },
  {
    call: "store.listen()",
    kind: "channel",
    says: "Cannot listen",
    open: ({ store }, name) => store.listen(name),
  },
  {
    call: "store.tryLock()",
    kind: "lock",
    says: "Cannot lock",
    open: ({ store }, name) => store.tryLock(name, "owner", 60_000),
  },
];

/** The same in a transaction. */
export const NAME_TX_DOORS: readonly Door[] = [
  {
    call: "tx.enqueueTx()",
    kind: "queue",
    says: "Cannot enqueue",
    open: ({ tx }, name) => tx.enqueueTx(name, {}, 1),
  },
  {
    call: "tx.enqueueManyTx()",
    kind: "queue",
    says: "Cannot enqueue",
    open: ({ tx }, name) => tx.enqueueManyTx(name, {}, [1, 2]),
  },
  {
    call: "tx.cancelTx()",
    kind: "queue",
    says: "Cannot cancel",
    open: ({ tx }, name) => tx.cancelTx(name, 1),
  },
  {
    call: "tx.outboxEnqueueTx()",
    kind: "outbox",
    says: "Cannot enqueue",
    open: ({ tx }, name) => tx.outboxEnqueueTx(name, {}, 1),
  },
  {
    call: "tx.publishTx()",
    kind: "stream",
    says: "Cannot publish",
    open: ({ tx }, name) => tx.publishTx(name, 1),
  },
  {
    call: "tx.publishWithKeyTx()",
    kind: "stream",
    says: "Cannot publish",
    open: ({ tx }, name) => tx.publishWithKeyTx(name, "key", 1),
  },
  {
    call: "tx.publishManyTx()",
    kind: "stream",
    says: "Cannot publish",
    open: ({ tx }, name) => tx.publishManyTx(name, [{ payload: 1 }]),
  },
  {
    call: "tx.saveOffsetTx()",
    kind: "stream",
    says: "Cannot save",
    open: ({ tx }, name) => tx.saveOffsetTx(name, "consumer", 0),
  },
  {
    call: "tx.notifyTx()",
    kind: "channel",
    says: "Cannot notify",
    open: ({ tx }, name) => tx.notifyTx(name, 1),
  },
];

/** Calls that take a consumer, key, worker or owner. */
export const LABEL_DOORS: readonly Door[] = [
  {
    call: "stream.readFromConsumer()",
    kind: "consumer",
    says: "Cannot",
    open: ({ stream }, name) => stream.readFromConsumer(name, 1),
  },
  {
    call: "stream.saveOffset()",
    kind: "consumer",
    says: "Cannot save",
    open: ({ stream }, name) => stream.saveOffset(name, 0),
  },
  {
    call: "stream.getOffset()",
    kind: "consumer",
    says: "Cannot get",
    open: ({ stream }, name) => stream.getOffset(name),
  },
  {
    call: "stream.resetOffset()",
    kind: "consumer",
    says: "Cannot reset",
    open: ({ stream }, name) => stream.resetOffset(name, 0),
  },
  {
    call: "stream.dropConsumer()",
    kind: "consumer",
    says: "Cannot drop",
    open: ({ stream }, name) => stream.dropConsumer(name),
  },
  {
    call: "stream.subscribe()",
    kind: "consumer",
    says: "Cannot subscribe",
    open: async ({ stream }, name) => await (await stream.subscribe(name)).close(),
  },
  {
    call: "stream.process()",
    kind: "consumer",
    says: "Cannot process",
    throws: true,
    open: ({ stream }, name) => stream.process(name, () => {}).stop(),
  },
  {
    call: "stream.publishWithKey()",
    kind: "key",
    says: "Cannot publish",
    open: ({ stream }, name) => stream.publishWithKey(name, 1),
  },
  {
    call: "stream.publishMany()",
    kind: "key",
    says: "Cannot publish",
    isOptional: true,
    open: ({ stream }, name) => stream.publishMany([{ payload: 1 }, { key: name, payload: 2 }]),
  },
  {
    call: "queue.claimOne()",
    kind: "worker",
    says: "Cannot claim",
    open: ({ queue }, name) => queue.claimOne(name),
  },
  {
    call: "queue.claimBatch()",
    kind: "worker",
    says: "Cannot claim",
    open: ({ queue }, name) => queue.claimBatch(name, 1),
  },
  {
    call: "queue.work()",
    kind: "worker",
    says: "Cannot work",
    throws: true,
    isOptional: true,
    open: ({ queue }, name) => queue.work(() => {}, { worker: name }).stop(),
  },
  {
    call: "outbox.runOnce()",
    kind: "worker",
    says: "Cannot run",
    open: ({ store }, name) => store.outbox("mail").runOnce(name, () => {}),
  },
  {
    call: "outbox.run()",
    kind: "worker",
    says: "Cannot",
    throws: true,
    isOptional: true,
    open: ({ store }, name) => store.outbox("mail").run(() => {}, { worker: name }).stop(),
  },
  {
    call: "store.tryLock()",
    kind: "owner",
    says: "Cannot lock",
    open: ({ store }, name) => store.tryLock("lock", name, 60_000),
  },
];

/** The same in a transaction. */
export const LABEL_TX_DOORS: readonly Door[] = [
  {
    call: "tx.publishWithKeyTx()",
    kind: "key",
    says: "Cannot publish",
    open: ({ tx }, name) => tx.publishWithKeyTx("orders", name, 1),
  },
  {
    call: "tx.publishManyTx()",
    kind: "key",
    says: "Cannot publish",
    isOptional: true,
    open: ({ tx }, name) => tx.publishManyTx("orders", [{ payload: 1 }, { key: name, payload: 2 }]),
  },
  {
    call: "tx.saveOffsetTx()",
    kind: "consumer",
    says: "Cannot save",
    open: ({ tx }, name) => tx.saveOffsetTx("orders", name, 0),
  },
];
