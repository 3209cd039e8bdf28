/**
 * The statements of the queues, in the order of a job's life. `now` is always a parameter: an operation
 * reads the clock once.
 */

/** The columns of a job, under the names of {@linkcode JobColumns}. */
const JOB_COLUMNS = `id, queue, state, priority, run_at, created_at, expires_at, attempts,
  max_attempts, visibility, backoff, claim, lease_until, worker, payload, last_error, reason, died_at`;

/** A row of `__alkstore_jobs`. */
export interface JobColumns {
  readonly id: number;
  readonly queue: string;
  readonly state: "ready" | "scheduled" | "claimed" | "dead";
  readonly priority: number;
  readonly run_at: number;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly visibility: number;
  readonly backoff: string;
  readonly claim: number;
  readonly lease_until: number | null;
  readonly worker: string | null;
  readonly payload: string;
  readonly last_error: string | null;
  readonly reason: "failed" | "exhausted" | "expired" | null;
  readonly died_at: number | null;
}

// Enqueue -------------------------------------------------------------------------------------------

/** Plain parameters: `json_each` costs a single row more than it saves. */
export const ENQUEUE = `
INSERT INTO __alkstore_jobs (queue, state, priority, run_at, created_at, expires_at, attempts,
  max_attempts, visibility, backoff, claim, payload)
VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, 0, ?)`;

/**
 * One call for all rows († in Deno a batch as one JSON array reaches 0.92 of Node, row by row 0.71).
 * `ORDER BY key`: ids follow the order of the array.
 */
export const ENQUEUE_MANY = `
INSERT INTO __alkstore_jobs (queue, state, priority, run_at, created_at, expires_at, attempts,
  max_attempts, visibility, backoff, claim, payload)
SELECT ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, 0, value FROM json_each(?) ORDER BY key`;

// Claim ---------------------------------------------------------------------------------------------

/**
 * What a claim has to do, as one probe: each subquery is one step into a partial index, whatever
 * cannot be claimed. (`state <> 'dead'` beside a narrower condition, here and below, is what the
 * partial index of expiries is found by.) Also what a waiter asks, on the reader.
 * Parameters: queue, now.
 */
export const CLAIM_DUTIES = `
SELECT
  EXISTS (SELECT 1 FROM __alkstore_jobs WHERE queue = ?1 AND state = 'ready') AS ready,
  EXISTS (SELECT 1 FROM __alkstore_jobs WHERE queue = ?1 AND state = 'scheduled'
    AND run_at <= ?2) AS due,
  EXISTS (SELECT 1 FROM __alkstore_jobs WHERE queue = ?1 AND state = 'claimed'
    AND lease_until <= ?2) AS lapsed,
  EXISTS (SELECT 1 FROM __alkstore_jobs WHERE queue = ?1 AND expires_at <= ?2
    AND state <> 'dead' AND state IN ('ready', 'scheduled')) AS expired`;

/** The next moment something happens in a queue by itself. Parameters: queue. */
export const NEXT_DEADLINE = `
SELECT min(
  coalesce((SELECT min(run_at) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'scheduled'),
    9e15),
  coalesce((SELECT min(lease_until) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'claimed'),
    9e15)
) AS at`;

/** In run-time order and in steps: a flood of due rows must not make one claim slow. */
export const PROMOTE_DUE = `
UPDATE __alkstore_jobs SET state = 'ready'
WHERE id IN (
  SELECT id FROM __alkstore_jobs WHERE queue = ?1 AND state = 'scheduled' AND run_at <= ?2
  ORDER BY run_at, id LIMIT ?3)`;

/**
 * Takes ready jobs in the order of the ready index: no sort. Rows past their expiry that no sweep has
 * moved yet are passed over.
 * Parameters: queue, now, limit, worker.
 */
export const CLAIM: string = `
UPDATE __alkstore_jobs
SET state = 'claimed', claim = claim + 1, attempts = attempts + 1, worker = ?4,
  lease_until = ?2 + visibility
WHERE id IN (
  SELECT id FROM __alkstore_jobs
  WHERE queue = ?1 AND state = 'ready' AND (expires_at IS NULL OR expires_at > ?2)
  ORDER BY priority DESC, run_at, id LIMIT ?3)
RETURNING ${JOB_COLUMNS}`;

// Calls of a holder: each presents its token, and none lands once the lease has ended ---------------

/** Parameters: id, claim, now. */
export const ACK = `
DELETE FROM __alkstore_jobs
WHERE id = ? AND claim = ? AND state = 'claimed' AND lease_until > ?`;

/** Parameters: a JSON array of [id, claim], now. */
export const ACK_MANY = `
DELETE FROM __alkstore_jobs
WHERE id IN (SELECT value ->> 0 FROM json_each(?1)) AND state = 'claimed' AND lease_until > ?2
  AND (id, claim) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1))
RETURNING id`;

/** Parameters: id, claim, now, run_at, error. Keeps an older error when there is no new one. */
export const RETRY = `
UPDATE __alkstore_jobs
SET state = CASE
    WHEN expires_at <= ?3 OR attempts >= max_attempts THEN 'dead'
    WHEN ?4 > ?3 THEN 'scheduled'
    ELSE 'ready' END,
  reason = CASE
    WHEN expires_at <= ?3 THEN 'expired'
    WHEN attempts >= max_attempts THEN 'exhausted' END,
  died_at = CASE WHEN expires_at <= ?3 OR attempts >= max_attempts THEN ?3 END,
  run_at = CASE WHEN expires_at <= ?3 OR attempts >= max_attempts THEN run_at ELSE ?4 END,
  lease_until = NULL,
  last_error = coalesce(?5, last_error)
WHERE id = ?1 AND claim = ?2 AND state = 'claimed' AND lease_until > ?3
RETURNING state`;

/** Parameters: id, claim, now, error. */
export const FAIL = `
UPDATE __alkstore_jobs
SET state = 'dead', reason = 'failed', died_at = ?3, lease_until = NULL,
  last_error = coalesce(?4, last_error)
WHERE id = ?1 AND claim = ?2 AND state = 'claimed' AND lease_until > ?3`;

/** Parameters: id, claim, now. The run time stays: the job keeps its place. */
export const RELEASE = `
UPDATE __alkstore_jobs
SET state = CASE WHEN expires_at <= ?3 THEN 'dead' ELSE 'ready' END,
  reason = CASE WHEN expires_at <= ?3 THEN 'expired' END,
  died_at = CASE WHEN expires_at <= ?3 THEN ?3 END,
  attempts = attempts - 1, lease_until = NULL
WHERE id = ?1 AND claim = ?2 AND state = 'claimed' AND lease_until > ?3
RETURNING state`;

/** Parameters: id, claim, now, extend. Never shortens. */
export const HEARTBEAT = `
UPDATE __alkstore_jobs SET lease_until = max(lease_until, ?3 + ?4)
WHERE id = ?1 AND claim = ?2 AND state = 'claimed' AND lease_until > ?3`;

// Recovery: data only, and each update repeats its whole predicate ----------------------------------

/**
 * Lapsed claims, to where they belong: dead when expired or out of attempts, else ready in their old
 * place. Parameters: queue, now, limit.
 */
export const RECOVER_LAPSED = `
UPDATE __alkstore_jobs
SET state = CASE WHEN expires_at <= ?2 OR attempts >= max_attempts THEN 'dead' ELSE 'ready' END,
  reason = CASE WHEN expires_at <= ?2 THEN 'expired'
    WHEN attempts >= max_attempts THEN 'exhausted' END,
  died_at = CASE WHEN expires_at <= ?2 OR attempts >= max_attempts THEN ?2 END,
  last_error = coalesce(last_error, 'the claim of worker ' || worker || ' lapsed'),
  lease_until = NULL
WHERE id IN (
  SELECT id FROM __alkstore_jobs WHERE queue = ?1 AND state = 'claimed' AND lease_until <= ?2
  ORDER BY lease_until LIMIT ?3)
RETURNING state`;

/** Parameters: queue, now, limit. */
export const EXPIRE = `
UPDATE __alkstore_jobs SET state = 'dead', reason = 'expired', died_at = ?2
WHERE id IN (
  SELECT id FROM __alkstore_jobs WHERE queue = ?1 AND expires_at <= ?2
    AND state <> 'dead' AND state IN ('ready', 'scheduled')
  ORDER BY expires_at LIMIT ?3)`;

/**
 * The queues that have something to sweep: hops from queue to queue through the two indexes instead
 * of reading them. Parameters: now.
 */
export const QUEUES_TO_SWEEP = `
WITH RECURSIVE
  holding (queue) AS (
    SELECT (SELECT min(queue) FROM __alkstore_jobs WHERE state = 'claimed')
    UNION ALL
    SELECT (SELECT min(queue) FROM __alkstore_jobs
      WHERE state = 'claimed' AND queue > holding.queue)
    FROM holding WHERE holding.queue IS NOT NULL),
  expiring (queue) AS (
    SELECT (SELECT min(queue) FROM __alkstore_jobs WHERE expires_at IS NOT NULL AND state <> 'dead')
    UNION ALL
    SELECT (SELECT min(queue) FROM __alkstore_jobs
      WHERE expires_at IS NOT NULL AND state <> 'dead' AND queue > expiring.queue)
    FROM expiring WHERE expiring.queue IS NOT NULL)
SELECT queue FROM holding WHERE queue IS NOT NULL AND EXISTS (
  SELECT 1 FROM __alkstore_jobs AS job
  WHERE job.queue = holding.queue AND state = 'claimed' AND lease_until <= ?1)
UNION
SELECT queue FROM expiring WHERE queue IS NOT NULL AND EXISTS (
  SELECT 1 FROM __alkstore_jobs AS job
  WHERE job.queue = expiring.queue AND expires_at <= ?1
    AND state <> 'dead' AND state IN ('ready', 'scheduled'))`;

// Care ----------------------------------------------------------------------------------------------

/**
 * Whoever holds it, but not what is dead, or would be once swept. Gives the state it had.
 * Parameters: id, queue, now.
 */
export const CANCEL = `
DELETE FROM __alkstore_jobs
WHERE id = ?1 AND queue = ?2 AND state <> 'dead'
  AND NOT (coalesce(expires_at <= ?3, FALSE) AND NOT (state = 'claimed' AND lease_until > ?3))
  AND NOT (state = 'claimed' AND lease_until <= ?3 AND attempts >= max_attempts)
RETURNING state`;

/** Parameters: id, queue. */
export const JOB: string = `SELECT ${JOB_COLUMNS} FROM __alkstore_jobs WHERE id = ? AND queue = ?`;

/** Parameters: queue, after, limit. */
export const DEAD_JOBS: string = `
SELECT ${JOB_COLUMNS} FROM __alkstore_jobs
WHERE queue = ? AND state = 'dead' AND id > ? ORDER BY id LIMIT ?`;

/** Dead at the read, but not moved there by a sweep yet: few. Parameters: queue, now, after, limit. */
export const DEAD_BY_NOW: string = `
SELECT ${JOB_COLUMNS} FROM __alkstore_jobs
WHERE queue = ?1 AND state = 'claimed' AND lease_until <= ?2 AND id > ?3
  AND (attempts >= max_attempts OR expires_at <= ?2)
UNION ALL
SELECT ${JOB_COLUMNS} FROM __alkstore_jobs
WHERE queue = ?1 AND expires_at <= ?2 AND state <> 'dead' AND state IN ('ready', 'scheduled')
  AND id > ?3
ORDER BY id LIMIT ?4`;

/** A fresh budget and no expiry: it would be dead again at once. Parameters: id, queue, now. */
export const REQUEUE = `
UPDATE __alkstore_jobs
SET state = 'ready', run_at = ?3, attempts = 0, expires_at = NULL, reason = NULL, died_at = NULL,
  lease_until = NULL
WHERE id = ?1 AND queue = ?2 AND (
  state = 'dead'
  OR state = 'claimed' AND lease_until <= ?3 AND (attempts >= max_attempts OR expires_at <= ?3)
  OR state IN ('ready', 'scheduled') AND expires_at <= ?3)`;

/** Parameters: queue, the latest death to delete, limit. */
export const PURGE_DEAD = `
DELETE FROM __alkstore_jobs WHERE id IN (
  SELECT id FROM __alkstore_jobs WHERE queue = ? AND state = 'dead' AND died_at <= ?
  ORDER BY died_at LIMIT ?)`;

/**
 * Counts by stored state, each over its own index, and what the clock has changed since: due, expired
 * and lapsed rows are few and corrected by the caller. Parameters: queue, now.
 */
export const COUNTS = `
SELECT
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'ready') AS ready,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'scheduled') AS scheduled,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'claimed') AS claimed,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'dead') AS dead,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND expires_at <= ?2
    AND state <> 'dead' AND state = 'ready') AS ready_expired,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND expires_at <= ?2
    AND state <> 'dead' AND state = 'scheduled') AS scheduled_expired,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'scheduled'
    AND run_at <= ?2) AS due,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND expires_at <= ?2
    AND state <> 'dead' AND state = 'scheduled' AND run_at <= ?2) AS due_expired,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'claimed'
    AND lease_until <= ?2) AS lapsed,
  (SELECT count(*) FROM __alkstore_jobs WHERE queue = ?1 AND state = 'claimed'
    AND lease_until <= ?2
    AND (attempts >= max_attempts OR coalesce(expires_at <= ?2, FALSE))) AS lapsed_dead`;

/** Parameters: queue, now. */
export const OLDEST_READY = `
SELECT min(at) AS at FROM (
  SELECT min(run_at) AS at FROM __alkstore_jobs
  WHERE queue = ?1 AND state = 'ready' AND (expires_at IS NULL OR expires_at > ?2)
  UNION ALL
  SELECT min(run_at) FROM __alkstore_jobs
  WHERE queue = ?1 AND state = 'scheduled' AND run_at <= ?2
    AND (expires_at IS NULL OR expires_at > ?2)
  UNION ALL
  SELECT min(run_at) FROM __alkstore_jobs
  WHERE queue = ?1 AND state = 'claimed' AND lease_until <= ?2 AND attempts < max_attempts
    AND (expires_at IS NULL OR expires_at > ?2))`;
