/** The queue operations, in whatever transaction is open. */

import type {
  ClaimRef,
  JobRow,
  JobStamp,
  Landing,
  QueueCounts,
  QueuePending,
} from "../../core/engine.ts";
import * as sql from "./sql/jobs.ts";
import type { Statements } from "./statements.ts";
import { wake } from "./wakes.ts";
import type { Work } from "./work.ts";

/** How many rows one claim promotes, recovers or expires at most. */
const STEP = 500;

/** Stores jobs; their ids, ascending. */
export function enqueue(
  { statements, now, moved }: Work,
  queue: string,
  stamp: JobStamp,
  payloads: readonly string[],
): number[] {
  const { priority, maxAttempts, visibility, backoff } = stamp;
  const runAt = stamp.runAt ?? now + stamp.delay;
  const state = runAt <= now ? "ready" : "scheduled";
  const expiresAt = stamp.expires === undefined ? null : now + stamp.expires;
  const isOne = payloads.length === 1;
  const { lastInsertRowid: last } = statements.get(isOne ? sql.ENQUEUE : sql.ENQUEUE_MANY).run(
    queue,
    state,
    priority,
    runAt,
    now,
    expiresAt,
    maxAttempts,
    visibility,
    backoff,
    isOne ? payloads[0]! : JSON.stringify(payloads),
  );
  // One writer draws at a time, so the ids of one statement follow each other.
  const first = last - payloads.length + 1;
  moved.draw("jobs", first, last);
  moved.topics.add(`queue:${queue}`);
  return isOne ? [last] : payloads.map((_, index) => first + index);
}

/** Takes ready jobs, in order, after moving what is due, lapsed or expired. */
export function claim(
  { statements, now, moved }: Work,
  queue: string,
  worker: string,
  limit: number,
): JobRow[] {
  const duties = claimDuties(statements, queue, now);
  if (duties.lapsed) recoverLapsed({ statements, now, moved }, queue, STEP);
  if (duties.expired) statements.get(sql.EXPIRE).run(queue, now, STEP);
  if (duties.due) statements.get(sql.PROMOTE_DUE).run(queue, now, Math.max(STEP, limit));
  const rows = statements.get<sql.JobColumns>(sql.CLAIM).all(queue, now, limit, worker);
  // Lease ends were added, and what was due may have hidden the next run time.
  if (rows.length > 0 || duties.due || duties.lapsed) moved.topics.add("deadlines:");
  // RETURNING promises no order.
  return rows.map(jobOf).sort((a, b) =>
    b.priority - a.priority || a.runAt - b.runAt || a.id - b.id
  );
}

/** Deletes jobs whose claims are live; the ids that landed. */
export function ack({ statements, now }: Work, claims: readonly ClaimRef[]): number[] {
  const [only] = claims;
  if (claims.length === 1) {
    const { changes } = statements.get(sql.ACK).run(only!.id, only!.claim, now);
    return changes === 1 ? [only!.id] : [];
  }
  const pairs = JSON.stringify(claims.map(({ id, claim }) => [id, claim]));
  return statements.get<{ id: number }>(sql.ACK_MANY).all(pairs, now).map((row) => row.id)
    .sort((a, b) => a - b);
}

/** Ends an attempt. */
export function retry(
  work: Work,
  queue: string,
  { id, claim }: ClaimRef,
  delay: number,
  error: string | undefined,
): Landing {
  const { statements, now, moved } = work;
  const row = statements.get<{ state: Landing }>(sql.RETRY)
    .get(id, claim, now, now + delay, error ?? null);
  if (row?.state === "ready") wake(work, `queue:${queue}`);
  if (row?.state === "scheduled") moved.topics.add("deadlines:");
  return row?.state ?? "lost";
}

/** Sends a job to the dead. */
export function fail(
  { statements, now }: Work,
  { id, claim }: ClaimRef,
  error: string | undefined,
): Landing {
  const { changes } = statements.get(sql.FAIL).run(id, claim, now, error ?? null);
  return changes === 1 ? "dead" : "lost";
}

/** Gives claims back without spending their attempts. */
export function release(work: Work, queue: string, claims: readonly ClaimRef[]): Landing[] {
  const { statements, now } = work;
  const landings = claims.map(({ id, claim }): Landing =>
    statements.get<{ state: Landing }>(sql.RELEASE).get(id, claim, now)?.state ?? "lost"
  );
  if (landings.includes("ready")) wake(work, `queue:${queue}`);
  return landings;
}

/** Extends live claims; the ids that landed. */
export function heartbeat(
  { statements, now }: Work,
  claims: readonly (ClaimRef & { readonly extend: number })[],
): number[] {
  return claims.filter(({ id, claim, extend }) =>
    statements.get(sql.HEARTBEAT).run(id, claim, now, extend).changes === 1
  ).map(({ id }) => id);
}

/** Deletes a job that is not dead. */
export function cancel(work: Work, queue: string, id: number): boolean {
  const { statements, now } = work;
  const row = statements.get<{ state: string }>(sql.CANCEL).get(id, queue, now);
  if (row?.state === "claimed") wake(work, `claims:${queue}`);
  return row !== undefined;
}

/** Makes a dead job ready again. */
export function requeue(work: Work, queue: string, id: number): boolean {
  const { statements, now } = work;
  const { changes } = statements.get(sql.REQUEUE).run(id, queue, now);
  if (changes === 1) wake(work, `queue:${queue}`);
  return changes === 1;
}

/** Deletes dead jobs that died at least `age` milliseconds ago. */
export function purgeDead(work: Work, queue: string, age: number, limit: number): number {
  // What is dead but not moved yet dies now.
  if (age === 0) sweep(work, queue, limit);
  return work.statements.get(sql.PURGE_DEAD).run(queue, work.now - age, limit).changes;
}

/** Moves lapsed claims and expired jobs of one queue; how many. */
export function sweep(work: Work, queue: string, limit: number): number {
  const recovered = recoverLapsed(work, queue, limit);
  if (recovered >= limit) return recovered;
  const { statements, now } = work;
  return recovered + statements.get(sql.EXPIRE).run(queue, now, limit - recovered).changes;
}

/** The queues that have something to sweep. */
export function queuesToSweep(statements: Statements, now: number): string[] {
  return statements.get<{ queue: string }>(sql.QUEUES_TO_SWEEP).all(now).map((row) => row.queue);
}

/** One job of a queue. */
export function job(statements: Statements, queue: string, id: number): JobRow[] {
  return statements.get<sql.JobColumns>(sql.JOB).all(id, queue).map(jobOf);
}

/** Dead jobs by id, also those that no sweep has moved yet. */
export function deadJobs(
  statements: Statements,
  queue: string,
  after: number,
  limit: number,
  now: number,
): JobRow[] {
  return [
    ...statements.get<sql.JobColumns>(sql.DEAD_JOBS).all(queue, after, limit),
    ...statements.get<sql.JobColumns>(sql.DEAD_BY_NOW).all(queue, now, after, limit),
  ].sort((a, b) => a.id - b.id).slice(0, limit).map(jobOf);
}

/** What a claim has to do; all false when it would find nothing to move and nothing to take. */
export function claimDuties(
  statements: Statements,
  queue: string,
  now: number,
): { ready: boolean; due: boolean; lapsed: boolean; expired: boolean } {
  const row = statements.get<Record<"ready" | "due" | "lapsed" | "expired", number>>(
    sql.CLAIM_DUTIES,
  ).get(queue, now);
  return {
    ready: row?.ready === 1,
    due: row?.due === 1,
    lapsed: row?.lapsed === 1,
    expired: row?.expired === 1,
  };
}

/** Whether a claim would find a job, and when the next one becomes claimable. */
export function pending(statements: Statements, queue: string, now: number): QueuePending {
  const { ready, due, lapsed } = claimDuties(statements, queue, now);
  const at = statements.get<{ at: number }>(sql.NEXT_DEADLINE).get(queue)?.at ?? 9e15;
  const nextIn = at < 9e15 && at > now ? at - now : undefined;
  return { queue, claimable: ready || due || lapsed, nextIn };
}

/** Counts by effective state. */
export function counts(statements: Statements, queue: string, now: number): QueueCounts {
  type Column =
    | "ready"
    | "scheduled"
    | "claimed"
    | "dead"
    | "ready_expired"
    | "scheduled_expired"
    | "due"
    | "due_expired"
    | "lapsed"
    | "lapsed_dead";
  const row = statements.get<Record<Column, number>>(sql.COUNTS).get(queue, now)!;
  const oldest = statements.get<{ at: number | null }>(sql.OLDEST_READY).get(queue, now)?.at;
  return {
    ready: row.ready - row.ready_expired + row.due - row.due_expired +
      row.lapsed - row.lapsed_dead,
    scheduled: row.scheduled - row.due - (row.scheduled_expired - row.due_expired),
    claimed: row.claimed - row.lapsed,
    dead: row.dead + row.ready_expired + row.scheduled_expired + row.lapsed_dead,
    oldestReady: oldest ?? undefined,
  };
}

function recoverLapsed({ statements, now, moved }: Work, queue: string, limit: number): number {
  const rows = statements.get<{ state: string }>(sql.RECOVER_LAPSED).all(queue, now, limit);
  // Other processes have timers on the same lease ends: only our own waiters need a word.
  if (rows.some((row) => row.state === "ready")) moved.topics.add(`queue:${queue}`);
  return rows.length;
}

function jobOf(row: sql.JobColumns): JobRow {
  return {
    id: row.id,
    queue: row.queue,
    state: row.state,
    payload: row.payload,
    priority: row.priority,
    runAt: row.run_at,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
    visibility: row.visibility,
    backoff: row.backoff,
    claim: row.claim,
    worker: row.worker ?? undefined,
    leaseUntil: row.lease_until ?? undefined,
    lastError: row.last_error ?? undefined,
    reason: row.reason ?? undefined,
    diedAt: row.died_at ?? undefined,
  };
}
