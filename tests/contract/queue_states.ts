import { assert, assertEquals } from "@std/assert";
import type { DeadReason, Job, JobState, Queue, Store } from "../../mod.ts";
import { type Harness, testStore } from "./harness.ts";
import { LONG, passed, SHORT } from "./queue_jobs.ts";
import { until } from "./wait.ts";

/** One cell of the state table: what is stored, and what time has made of it. */
interface Cell {
  readonly stored: "ready" | "scheduled" | "due" | "claimed";
  /** Of a claimed job only. */
  readonly lease?: "live" | "lapsed";
  readonly isExpired: boolean;
  /** Always true of a job that waits: a retry without one left is dead. */
  readonly hasAttempts: boolean;
}

/** A job in a cell, and the claim it is or was held by. */
interface Placed {
  readonly queue: Queue<string>;
  readonly id: number;
  readonly job: Job<string> | undefined;
}

/** All cells a job can be in. */
function cells(): Cell[] {
  const all: Cell[] = [];
  for (const isExpired of [false, true]) {
    for (const stored of ["ready", "scheduled", "due"] as const) {
      all.push({ stored, isExpired, hasAttempts: true });
    }
    for (const lease of ["live", "lapsed"] as const) {
      for (const hasAttempts of [true, false]) {
        all.push({ stored: "claimed", lease, isExpired, hasAttempts });
      }
    }
  }
  return all;
}

/** Where a job of the cell stands, whatever is stored. */
function effective({ stored, lease, isExpired, hasAttempts }: Cell): [JobState, DeadReason?] {
  if (lease === "live") return ["claimed"];
  if (isExpired) return ["dead", "expired"];
  if (lease === "lapsed" && !hasAttempts) return ["dead", "exhausted"];
  return [stored === "scheduled" ? "scheduled" : "ready"];
}

function describe({ stored, lease, isExpired, hasAttempts }: Cell): string {
  const parts = [
    stored,
    lease === undefined ? [] : `lease ${lease}`,
    isExpired ? "expired" : "not expired",
    hasAttempts ? "attempts left" : "no attempt left",
  ];
  return parts.flat().join(", ");
}

/** Puts a job into the cell, or gives nothing when the machine was too slow for its expiry. */
async function place(
  store: Store<unknown>,
  cell: Cell,
  expires: number,
): Promise<Placed | undefined> {
  const queue = store.queue<string>(`expires in ${expires}`, {
    visibility: cell.lease === "lapsed" ? SHORT : LONG,
    maxAttempts: cell.hasAttempts ? 2 : 1,
  });
  const id = await queue.enqueue("work", {
    expires: cell.isExpired ? expires : LONG,
    delay: cell.stored === "due" ? SHORT / 2 : 0,
  });
  if (cell.stored === "ready" || cell.stored === "due") return { queue, id, job: undefined };
  const job = await queue.claimOne("worker");
  if (job === undefined) return undefined;
  if (cell.stored === "claimed") return { queue, id, job };
  await job.retry({ delay: 2 * LONG });
  // Past the expiry the retry has sent it to the dead: that is another cell.
  return (await queue.getJob(id))?.diedAt === undefined ? { queue, id, job } : undefined;
}

/** Puts a job into the cell and waits until time has made it what it is. */
async function settle(store: Store<unknown>, cell: Cell): Promise<Placed> {
  let expires = SHORT;
  const placed = await until(async () => {
    const placed = await place(store, cell, expires);
    if (placed === undefined) expires *= 2;
    return placed;
  }, describe(cell));
  await passed(Math.max(
    cell.isExpired ? expires : 0,
    cell.lease === "lapsed" ? SHORT : 0,
    cell.stored === "due" ? SHORT / 2 : 0,
  ));
  return placed;
}

/** All that tells of a state tells of the same one. */
async function assertState({ queue, id }: Placed, cell: Cell): Promise<void> {
  const [state, reason] = effective(cell);
  const job = await queue.getJob(id);
  assertEquals([job?.state, job?.reason], [state, reason]);
  assertEquals(
    job?.leaseUntil !== undefined,
    state === "claimed",
    "leaseUntil is of a claimed job",
  );
  const { oldestReadyAt, ...counts } = await queue.stats();
  const none = { ready: 0, scheduled: 0, claimed: 0, dead: 0 };
  assertEquals(counts, { ...none, [state]: 1 });
  assertEquals(oldestReadyAt, state === "ready" ? job?.runAt : undefined);
  const dead = await queue.deadJobs();
  assertEquals(dead.map((job) => [job.id, job.reason]), state === "dead" ? [[id, reason]] : []);
}

/** The state is left the way it is meant to be left, and no other. */
async function assertExit({ queue, id, job }: Placed, cell: Cell): Promise<void> {
  const [state] = effective(cell);
  if (state === "claimed") {
    assertEquals(await queue.claimOne("worker"), undefined);
    assertEquals(await queue.requeue(id), false);
    assertEquals(await job!.ack(), true);
    assertEquals(await queue.getJob(id), undefined);
    return;
  }
  if (job !== undefined) assertEquals(await job.ack(), false, "the claim has ended");
  const next = await queue.claimOne("worker");
  assertEquals(next?.id, state === "ready" ? id : undefined);
  if (state === "ready") return assertEquals(next?.attempt, cell.stored === "claimed" ? 2 : 1);
  if (state === "scheduled") {
    assertEquals(await queue.requeue(id), false);
    assertEquals(await queue.cancel(id), true);
    return assertEquals(await queue.getJob(id), undefined);
  }
  assertEquals(await queue.cancel(id), false);
  assertEquals(await queue.requeue(id), true);
  const revived = await queue.claimOne("worker");
  assertEquals([revived?.id, revived?.attempt], [id, 1]);
}

/** The state table: every cell has an exit, and every read says what holds at the read. */
export function queueStates(harness: Harness): void {
  for (const cell of cells()) {
    const [state, reason] = effective(cell);
    const told = reason === undefined ? state : `${state} (${reason})`;

    testStore(harness, `a job (${describe(cell)}) is ${told} before a sweep`, async (store) => {
      const placed = await settle(store, cell);
      await assertState(placed, cell);
      await assertExit(placed, cell);
    });

    testStore(harness, `a job (${describe(cell)}) is ${told} after a sweep`, async (store) => {
      const placed = await settle(store, cell);
      const moved = await placed.queue.sweepExpired();
      // Whether a due job counts as moved is the engine's business.
      if (cell.stored !== "due") assertEquals(moved, state === cell.stored ? 0 : 1);
      await assertState(placed, cell);
      assertEquals(await placed.queue.sweepExpired(), 0);
      await assertExit(placed, cell);
    });
  }

  testStore(harness, "a dead job that no sweep has moved can be requeued", async (store) => {
    const cell: Cell = { stored: "claimed", lease: "lapsed", isExpired: false, hasAttempts: false };
    const { queue, id } = await settle(store, cell);
    assertEquals(await queue.requeue(id), true);
    assertEquals((await queue.claimOne("worker"))?.id, id);
  });

  testStore(harness, "a dead job that no sweep has moved can be purged", async (store) => {
    const cell: Cell = { stored: "ready", isExpired: true, hasAttempts: true };
    const { queue, id } = await settle(store, cell);
    assertEquals(await queue.purgeDead(), 1);
    assertEquals(await queue.getJob(id), undefined);
  });

  testStore(harness, "a dead job that no sweep has moved cannot be cancelled", async (store) => {
    for (const stored of ["ready", "scheduled"] as const) {
      const { queue, id } = await settle(store, { stored, isExpired: true, hasAttempts: true });
      assertEquals(await queue.cancel(id), false);
      assertEquals((await queue.getJob(id))?.state, "dead");
    }
  });

  testStore(harness, "queue.stats() counts jobs of every state", async (store) => {
    const queue = store.queue<number>("q");
    const oldest = new Date("2020-01-01T00:00:00Z");
    await queue.enqueueMany([1, 2, 3, 4], { priority: 1 });
    const jobs = await queue.claimBatch("worker", 4);
    await jobs[0]!.fail();
    await queue.enqueueMany([5, 6], { delay: LONG });
    await queue.enqueueMany([7, 8, 9, 10]);
    await queue.enqueue(11, { runAt: oldest, priority: -1 });
    await store.queue<number>("other").enqueue(12);
    assertEquals(await queue.stats(), {
      ready: 5,
      scheduled: 2,
      claimed: 3,
      dead: 1,
      oldestReadyAt: oldest,
    });
  });

  for (const oldest of ["ready", "lapsed"]) {
    testStore(
      harness,
      `queue.stats() finds the oldest ready job when it is ${oldest}`,
      async (store) => {
        const queue = store.queue("q", { visibility: SHORT });
        const year = (state: string) => new Date(Date.UTC(state === oldest ? 2001 : 2002));
        await queue.enqueue(1, { runAt: year("lapsed") });
        await queue.claimOne("worker");
        await queue.enqueue(2, { runAt: year("ready") });
        await passed(SHORT);
        const { oldestReadyAt, ready } = await queue.stats();
        assertEquals([oldestReadyAt, ready], [year(oldest), 2]);
      },
    );
  }

  testStore(
    harness,
    "queue.stats() finds the oldest ready job when it has become due",
    async (store) => {
      const queue = store.queue("q");
      const runAt = new Date(Date.now() + SHORT);
      await queue.enqueue(1, { runAt });
      await passed(SHORT);
      await queue.enqueue(2);
      const { oldestReadyAt, ready } = await queue.stats();
      assertEquals([oldestReadyAt, ready], [runAt, 2]);
    },
  );

  testStore(harness, "queue.stats() of an unused queue counts nothing", async (store) => {
    const none = { ready: 0, scheduled: 0, claimed: 0, dead: 0, oldestReadyAt: undefined };
    assertEquals(await store.queue("unused").stats(), none);
  });

  testStore(harness, "a dead job tells when it died", async (store) => {
    const queue = store.queue("q");
    await queue.enqueue(1);
    const job = await queue.claimOne("worker");
    const before = Date.now();
    await job!.fail();
    const dead = await queue.getJob(job!.id);
    assert(Math.abs(dead!.diedAt!.getTime() - before) < 10_000);
  });
}
