/** Wakes that no growing id tells of. */

import type { Topic } from "../../core/engine.ts";
import * as sql from "./sql/wakes.ts";
import type { Work } from "./work.ts";

/** How long a wake row is kept, in milliseconds: a day. */
const KEPT = 86_400_000;

/** Wakes a topic in every process with the commit. */
export function wake({ statements, now, moved }: Work, topic: Topic): void {
  const seq = statements.get<{ seq: number }>(sql.WAKE).get(topic, now)!.seq;
  moved.draw("wakes", seq, seq);
  (moved.woken ??= new Map()).set(topic, seq);
  moved.topics.add(topic);
}

/**
 * Takes back what a savepoint has rolled back since it was noted. Called in the transaction, before
 * its commit: a wake of a rolled-back `notifyTx` must not be handed out, and an id that was given back
 * must not count as seen.
 */
export function settleMoved({ statements, moved }: Pick<Work, "statements" | "moved">): void {
  for (const [topic, seq] of moved.woken ?? []) {
    const row = statements.get<{ seq: number }>(sql.WAKE_NUMBER).get(topic);
    if (row?.seq === seq) continue;
    moved.topics.delete(topic);
    moved.wakes = undefined;
  }
  if (moved.jobs !== undefined && lastDrawn(statements, "__alkstore_jobs") !== moved.jobs.last) {
    moved.jobs = undefined;
  }
  if (
    moved.events !== undefined && lastDrawn(statements, "__alkstore_events") !== moved.events.last
  ) {
    moved.events = undefined;
  }
}

function lastDrawn(statements: Work["statements"], table: string): number | undefined {
  return statements.get<{ seq: number }>(sql.LAST_DRAWN).get(table)?.seq;
}

/** Drops rows nobody touched for a day and raises the floor over them. */
export function pruneWakes({ statements, now }: Work): void {
  const before = now - KEPT;
  const floor = statements.get<{ floor: number | null }>(sql.PRUNABLE_WAKES).get(before)?.floor;
  if (typeof floor !== "number") return;
  statements.get(sql.RAISE_WAKE_FLOOR).run(floor);
  statements.get(sql.PRUNE_WAKES).run(floor);
}

/** Whether there is something to prune; for the reader. */
export function arePrunable({ statements, now }: Omit<Work, "moved">): boolean {
  const row = statements.get<{ floor: number | null }>(sql.PRUNABLE_WAKES).get(now - KEPT);
  return typeof row?.floor === "number";
}
