import { assertEquals } from "@std/assert";
import { type Harness, testStore } from "./harness.ts";
import { type Argument, type Call, openScene, type Scene } from "./mistakes.ts";
import { QUEUE_CALLS } from "./queue_mistakes.ts";
import { assertRefuses, assertWritesNothing, fromJavaScript } from "./refusals.ts";
import { STORE_CALLS } from "./store_mistakes.ts";
import { STREAM_CALLS } from "./stream_mistakes.ts";
import { TX_CALLS } from "./tx_mistakes.ts";

/** Mistakes in the calling code: what they meet, and that they change nothing. */
export function argumentMistakes(harness: Harness): void {
  for (const call of [...QUEUE_CALLS, ...STREAM_CALLS, ...STORE_CALLS]) {
    for (const argument of call.arguments) refuses(harness, call, argument);
  }
  for (const call of TX_CALLS) {
    for (const argument of call.arguments) refusesInTx(harness, call, argument);
  }
}

function refuses(harness: Harness, call: Call, argument: Argument): void {
  testStore(harness, `${call.call} refuses ${argument.phrase}`, async (store, database) => {
    const scene = await openScene(store);
    await assertWritesNothing(database, () => assertRefusesAll(scene, call, argument));
    await assertUnharmed(scene);
  });
}

function refusesInTx(harness: Harness, call: Call, argument: Argument): void {
  testStore(
    harness,
    `${call.call} refuses ${argument.phrase}, and the tx stays usable`,
    async (store, database) => {
      const scene = await openScene(store);
      await assertWritesNothing(database, async () => {
        const tx = await store.beginTx();
        await assertRefusesAll({ ...scene, tx }, call, argument);
        await tx.commit();
      });
      const tx = await store.beginTx();
      await assertRefusesAll({ ...scene, tx }, call, argument);
      const id = await tx.enqueueTx("after", {}, "good");
      await tx.commit();
      assertEquals((await store.queue("after").getJob(id))?.payload, "good");
      await assertUnharmed(scene);
    },
  );
}

async function assertRefusesAll(scene: Scene, call: Call, argument: Argument): Promise<void> {
  const { says, throws = false } = call;
  for (const [value, error, called] of argument.refuses) {
    await assertRefuses(
      () => argument.pass(scene, fromJavaScript(value)),
      { error, says, throws, names: [argument.name, called] },
      `${call.call} with ${argument.name} ${called}`,
    );
  }
}

/** The handles still are what they were: nothing was claimed, lost or ended. */
async function assertUnharmed(
  { job, lock, events, wakes, worker, ...scene }: Scene,
): Promise<void> {
  assertEquals((await scene.queue.getJob(job.id))?.state, "claimed");
  assertEquals(await job.ack(), true);
  assertEquals(await lock.release(), true);
  assertEquals((await events.tryRecv())?.payload, "first");
  assertEquals(wakes.tryRecv(), undefined);
  assertEquals((await scene.outbox.stats()).ready, 1);
  assertEquals((await scene.store.status()).workers, 2);
  await worker.stop();
  await scene.projection.stop();
}
