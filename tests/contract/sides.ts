import type { Store } from "../../mod.ts";
import { type Harness, type OpenOptions, type TestDatabase, testStore } from "./harness.ts";

/** Who writes and who waits for it, on one database. */
export interface Sides {
  /** The store that writes. */
  readonly writer: Store<unknown>;
  /** The store that waits. */
  readonly reader: Store<unknown>;
  /** Their database. */
  readonly database: TestDatabase;
}

/**
 * Registers a test twice: within one store and between two. What a store commits itself and what
 * others commit reaches its receivers on different ways.
 */
export function testSides(
  harness: Harness,
  name: string,
  run: (sides: Sides) => Promise<void>,
  options?: OpenOptions,
): void {
  testStore(
    harness,
    `${name}, within one store`,
    (store, database) => run({ writer: store, reader: store, database }),
    options,
  );
  testStore(
    harness,
    `${name}, between two stores`,
    async (writer, database) => {
      await run({ writer, reader: await database.open(options), database });
    },
    options,
  );
}
