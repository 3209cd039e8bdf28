import { assertEquals } from "@std/assert";
import {
  type AlkstoreError,
  InvalidNameError,
  Reserved,
  ReservedNameError,
  type Store,
} from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import {
  type Door,
  LABEL_DOORS,
  LABEL_TX_DOORS,
  NAME_DOORS,
  NAME_TX_DOORS,
  type Scene,
} from "./name_doors.ts";
import { assertRefuses, assertWritesNothing, type ErrorClass, fromJavaScript } from "./refusals.ts";

const INVALID: readonly string[] = [
  "",
  "n".repeat(1_001),
  "é".repeat(501),
  "日".repeat(334),
  "🎉".repeat(251),
  "\0",
  "a\0b",
  "\ud800",
  "a\udc00b",
  "\udc00\ud800",
];

const RESERVED: readonly string[] = [
  Reserved.PREFIX,
  `${Reserved.PREFIX}x`,
  `${Reserved.PREFIX}outbox:mail`,
  Reserved.LISTENER_RECONNECTED,
];

/** Close to the reserved prefix, and fine. */
const UNRESERVED: readonly string[] = ["__alkstore", "_alkstore_x", "__ALKSTORE_x", "x__alkstore_"];

/** What is no string, and what a message calls it. */
const NO_STRINGS: readonly (readonly [unknown, string])[] = [
  [5, "5"],
  [true, "true"],
  [7n, "7n"],
  [null, "null"],
  [undefined, "undefined"],
  [Symbol("name"), "symbol"],
  [["orders"], "array"],
  [{ name: "orders" }, "object"],
  [new String("orders"), "String"],
  [() => "orders", "function"],
];

/** Names and labels: which are refused, where and how, on the plain and on the tx path. */
export function names(harness: Harness): void {
  for (const door of NAME_DOORS) refusesNames(harness, door);
  for (const door of NAME_TX_DOORS) refusesNamesInTx(harness, door);
  for (const door of LABEL_DOORS) refusesLabels(harness, door);
  for (const door of LABEL_TX_DOORS) refusesLabelsInTx(harness, door);
}

function refusesNames(harness: Harness, door: Door): void {
  testStore(harness, `${door.call} refuses a bad ${door.kind}`, async (store, database) => {
    const scene = sceneOf(store);
    await assertWritesNothing(database, async () => {
      await assertRefusesBad(door, scene);
      await assertRefusesReserved(door, scene);
    });
    for (const name of UNRESERVED) await door.open(scene, name);
  });
}

function refusesNamesInTx(harness: Harness, door: Door): void {
  testStore(harness, `${door.call} refuses a bad ${door.kind}`, async (store, database) => {
    const scene = { ...sceneOf(store), tx: await store.beginTx() };
    await assertWritesNothing(database, async () => {
      await assertRefusesBad(door, scene);
      await assertRefusesReserved(door, scene);
      await scene.tx.commit();
    });
  });

  testStore(
    harness,
    `a tx stays usable after a bad ${door.kind} in ${door.call}`,
    async (store) => {
      const scene = { ...sceneOf(store), tx: await store.beginTx() };
      await assertRefusesReserved(door, scene);
      await assertRefusesBad(door, scene);
      for (const name of UNRESERVED) await door.open(scene, name);
      const id = await scene.tx.enqueueTx("jobs", {}, "after");
      await scene.tx.commit();
      assertEquals((await store.queue("jobs").getJob(id))?.payload, "after");
    },
  );
}

function refusesLabels(harness: Harness, door: Door): void {
  testStore(
    harness,
    `${door.call} refuses a bad ${door.kind}, and knows no reserved one`,
    async (store, database) => {
      const scene = sceneOf(store);
      await assertWritesNothing(database, () => assertRefusesBad(door, scene));
      for (const label of [...RESERVED, ...UNRESERVED]) await door.open(scene, label);
    },
  );
}

function refusesLabelsInTx(harness: Harness, door: Door): void {
  testStore(
    harness,
    `${door.call} refuses a bad ${door.kind}, knows no reserved one, and leaves the tx usable`,
    async (store) => {
      const scene = { ...sceneOf(store), tx: await store.beginTx() };
      await assertRefusesBad(door, scene);
      for (const label of [...RESERVED, ...UNRESERVED]) await door.open(scene, label);
      const id = await scene.tx.enqueueTx("jobs", {}, "after");
      await scene.tx.commit();
      assertEquals((await store.queue("jobs").getJob(id))?.payload, "after");
    },
  );
}

/** A scene outside of any transaction: its `tx` is for those who bring one. */
function sceneOf(store: Store<unknown>): Scene {
  return {
    store,
    queue: store.queue("jobs"),
    stream: store.stream("orders"),
    tx: fromJavaScript(undefined),
  };
}

async function assertRefusesBad(door: Door, scene: Scene): Promise<void> {
  for (const name of INVALID) await assertNameError(door, scene, name, InvalidNameError);
  for (const [value, called] of NO_STRINGS) {
    if (value === undefined && door.isOptional) continue;
    const what = `${door.call} with ${called}`;
    const { says, throws = false } = door;
    const expected = { error: TypeError, says, throws, names: [door.kind, called] };
    await assertRefuses(() => door.open(scene, fromJavaScript(value)), expected, what);
  }
}

async function assertRefusesReserved(door: Door, scene: Scene): Promise<void> {
  for (const name of RESERVED) await assertNameError(door, scene, name, ReservedNameError);
}

async function assertNameError(
  door: Door,
  scene: Scene,
  name: string,
  error: ErrorClass & (new (...args: never[]) => AlkstoreError & { rejectedName: string }),
): Promise<void> {
  const shown = JSON.stringify(name).slice(0, 40);
  const { says, throws = false } = door;
  const refused = await assertRefuses(
    () => door.open(scene, name),
    { error, says, throws, names: [shown.replace(/"$/, "")] },
    `${door.call} with ${shown}`,
  );
  assertEquals("rejectedName" in refused && refused.rejectedName, name);
}
