import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import {
  AlkstoreError,
  ClosedError,
  CodecError,
  DatabaseError,
  InvalidNameError,
  PayloadTooLargeError,
  ReservedNameError,
} from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";

/** The error taxonomy: one class per pinned variant, told apart by class and by code. */
export function errors(harness: Harness): void {
  testStore(
    harness,
    "each error has the code of its variant and its facts",
    async (store, database) => {
      const reserved = assertThrows(() => store.queue("__alkstore_x"), ReservedNameError);
      assertEquals([reserved.code, reserved.rejectedName], ["ReservedName", "__alkstore_x"]);
      const invalid = await assertRejects(() => store.notify("a\0b"), InvalidNameError);
      assertEquals([invalid.code, invalid.rejectedName], ["InvalidName", "a\0b"]);
      const payload = { items: [1, { at: new Date() }] };
      const codec = await assertRejects(
        () => store.queue("mail").enqueue(payload as never),
        CodecError,
      );
      assertEquals([codec.code, codec.path], ["Codec", "$.items[1].at"]);
      const receiver = await store.listen("news");
      await receiver.close();
      const closed = assertThrows(() => receiver.tryRecv(), ClosedError);
      assertEquals(closed.code, "Closed");
      const id = await store.queue("mail").enqueue("hello");
      await database.poisonJob(id, "{");
      const poisoned = await store.queue("mail").getJob(id);
      const unreadable = assertThrows(() => poisoned?.payload, CodecError);
      assertInstanceOf(unreadable.cause, Error);
      for (const error of [reserved, invalid, codec, closed, unreadable]) {
        assertInstanceOf(error, AlkstoreError);
        assertEquals(error.name, `${error.code}Error`);
        assert(error.message.startsWith("Cannot "), error.message);
      }
    },
  );

  testStore(
    harness,
    "store.notify() measures its payload in bytes where there is a limit",
    async (store) => {
      const { notifyLimit } = harness.traits;
      // Quotes count: the payload is JSON.
      const longest = "é".repeat(((notifyLimit ?? 7_999) - 3) / 2);
      await store.notify("news", longest);
      if (notifyLimit === undefined) return await store.notify("news", longest.repeat(100));
      const error = await assertRejects(
        () => store.notify("news", `${longest}éé`),
        PayloadTooLargeError,
      );
      assertEquals([error.code, error.limit], ["PayloadTooLarge", notifyLimit]);
      assertInstanceOf(error, AlkstoreError);
    },
  );

  if (!harness.traits.concurrentTransactions) {
    testStore(harness, "a retryable error has applied nothing", async (store) => {
      const tx = await store.beginTx();
      const error = await assertRejects(() => store.queue("mail").enqueue("late"), DatabaseError);
      assertEquals([error.code, error.retryable, error.outcome], ["Database", true, "not-applied"]);
      assertInstanceOf(error, AlkstoreError);
      await tx.rollback();
      assertEquals((await store.queue("mail").stats()).ready, 0);
    }, { writerTimeout: 20 });
  }
}
