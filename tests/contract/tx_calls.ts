import { assertExists } from "@std/assert";
import type { Job, JoinedTx, Json, Queue, Store } from "../../mod.ts";
import { soon, until } from "./wait.ts";

/** A call of a transaction that writes something, and what it needs beforehand. */
export interface TxCall {
  /** `enqueueTx`: as it stands in a test's name. */
  readonly name: string;
  /** Sets the stage with the store alone. */
  readonly prepare: (store: Store<unknown>) => Promise<PreparedCall>;
}

/** A call that is ready to be made. */
export interface PreparedCall {
  /** Makes the call. */
  readonly run: (tx: JoinedTx<unknown>) => Promise<unknown>;
  /** Whether its effect can be seen from outside the transaction. */
  readonly isThere: () => Promise<boolean>;
}

/** Every call of a transaction that writes, apart from the lock's, which leaves nothing. */
export const txCalls: readonly TxCall[] = [
  {
    name: "enqueueTx",
    prepare: (store) =>
      prepared((tx) => tx.enqueueTx("mail", {}, "hello"), async () => {
        return (await store.queue("mail").stats()).ready === 1;
      }),
  },
  {
    name: "enqueueManyTx",
    prepare: (store) =>
      prepared((tx) => tx.enqueueManyTx("mail", {}, ["a", "b", "c"]), async () => {
        return (await store.queue("mail").stats()).ready === 3;
      }),
  },
  {
    name: "outboxEnqueueTx",
    prepare: (store) =>
      prepared((tx) => tx.outboxEnqueueTx("mail", {}, "hello"), async () => {
        return (await store.outbox("mail").stats()).ready === 1;
      }),
  },
  {
    name: "publishTx",
    prepare: (store) =>
      prepared((tx) => tx.publishTx("orders", "placed"), async () => {
        return (await payloads(store)).join() === "placed";
      }),
  },
  {
    name: "publishWithKeyTx",
    prepare: (store) =>
      prepared((tx) => tx.publishWithKeyTx("orders", "o-1", "placed"), async () => {
        const [event] = await store.stream("orders").readSince(0, 10);
        return event?.key === "o-1";
      }),
  },
  {
    name: "publishManyTx",
    prepare: (store) =>
      prepared(
        (tx) => tx.publishManyTx("orders", [{ payload: "a" }, { payload: "b" }]),
        async () => {
          return (await payloads(store)).join() === "a,b";
        },
      ),
  },
  {
    name: "saveOffsetTx",
    prepare: async (store) => {
      const offset = await store.stream("orders").publish("placed");
      return await prepared((tx) => tx.saveOffsetTx("orders", "billing", offset), async () => {
        return await store.stream("orders").getOffset("billing") === offset;
      });
    },
  },
  {
    name: "notifyTx",
    prepare: async (store) => {
      const news = await store.listen("news");
      const marker = await store.listen("marker");
      return await prepared((tx) => tx.notifyTx("news", "hello"), async () => {
        // Whatever was to wake has done so when a later wake is here.
        await store.notify("marker");
        await soon(marker.recv(), "the marker");
        return news.tryRecv() !== undefined;
      });
    },
  },
  {
    name: "ackTx",
    prepare: async (store) => {
      const { queue, job } = await claimed(store);
      return await prepared((tx) => tx.ackTx(job), async () => {
        return await queue.getJob(job.id) === undefined;
      });
    },
  },
  {
    name: "retryTx",
    prepare: async (store) => {
      const { queue, job } = await claimed(store);
      return await prepared((tx) => tx.retryTx(job, { delay: 60_000, error: "busy" }), async () => {
        return (await queue.getJob(job.id))?.state === "scheduled";
      });
    },
  },
  {
    name: "failTx",
    prepare: async (store) => {
      const { queue, job } = await claimed(store);
      return await prepared((tx) => tx.failTx(job, "broken"), async () => {
        return (await queue.getJob(job.id))?.reason === "failed";
      });
    },
  },
  {
    name: "cancelTx",
    prepare: async (store) => {
      const queue = store.queue("mail");
      const id = await queue.enqueue("hello");
      return await prepared((tx) => tx.cancelTx("mail", id), async () => {
        return await queue.getJob(id) === undefined;
      });
    },
  },
];

/** A queue with one claimed job; with `visibility`, the claim lapses after so many milliseconds. */
export async function claimed(
  store: Store<unknown>,
  visibility: number = 60_000,
): Promise<{ queue: Queue<Json, Json, unknown>; job: Job }> {
  const queue = store.queue("mail", { visibility });
  await queue.enqueue("hello");
  const job = await queue.claimOne("w-1");
  assertExists(job);
  return { queue, job };
}

/** A job whose claim was held once and has lapsed since. */
export async function lapsed(
  store: Store<unknown>,
): Promise<{ queue: Queue<Json, Json, unknown>; job: Job }> {
  const { queue, job } = await claimed(store, 50);
  await until(async () => (await queue.getJob(job.id))?.state === "ready", "the end of the lease");
  return { queue, job };
}

function prepared(
  run: PreparedCall["run"],
  isThere: PreparedCall["isThere"],
): Promise<PreparedCall> {
  return Promise.resolve({ run, isThere });
}

async function payloads(store: Store<unknown>): Promise<unknown[]> {
  const events = await store.stream("orders").readSince(0, 10);
  return events.map((event) => event.payload);
}

/** What a promise rejects with, once it does. Never rejects itself: the test may fail meanwhile. */
export function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then((value) => new Error(`resolved with ${value}`), (error) => error);
}
