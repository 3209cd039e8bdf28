/** The tables, and the ordered list of migrations that makes them. */

/** The schema version this code writes and reads. */
export const SCHEMA_VERSION = 1;

/** Created outside the list: where the version is kept (never in `user_version`, the app's own). */
export const META = `
CREATE TABLE IF NOT EXISTS __alkstore_meta (
  key TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID`;

/**
 * Migration `n` leads from schema version `n` to `n + 1`.
 *
 * AUTOINCREMENT wherever an id must never be drawn twice: the wake loop reads rows above the last
 * id it saw, and a consumer's saved offset must never point into a restarted stream.
 */
export const MIGRATIONS: readonly string[] = [
  `
-- Jobs of every queue. One row a job; a finished job leaves, so the table stays small and hot.
CREATE TABLE __alkstore_jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  attempts INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  visibility INTEGER NOT NULL,
  backoff TEXT NOT NULL,
  claim INTEGER NOT NULL,
  lease_until INTEGER,
  worker TEXT,
  payload TEXT NOT NULL,
  last_error TEXT,
  reason TEXT,
  died_at INTEGER
) STRICT;

-- One partial index a state: what cannot be claimed is not in the way of what can († a claim cost
-- 50 ms at 100,000 delayed rows when one index held them all).
CREATE INDEX __alkstore_jobs_ready ON __alkstore_jobs (queue, priority DESC, run_at, id)
  WHERE state = 'ready';
CREATE INDEX __alkstore_jobs_scheduled ON __alkstore_jobs (queue, run_at, id)
  WHERE state = 'scheduled';
CREATE INDEX __alkstore_jobs_claimed ON __alkstore_jobs (queue, lease_until)
  WHERE state = 'claimed';
CREATE INDEX __alkstore_jobs_expires ON __alkstore_jobs (queue, expires_at, state)
  WHERE expires_at IS NOT NULL AND state <> 'dead';
CREATE INDEX __alkstore_jobs_dead ON __alkstore_jobs (queue, id)
  WHERE state = 'dead';
CREATE INDEX __alkstore_jobs_died ON __alkstore_jobs (queue, died_at)
  WHERE state = 'dead';

-- Events of every stream. Offsets are drawn from one counter, so one number says what is new.
CREATE TABLE __alkstore_events (
  "offset" INTEGER PRIMARY KEY AUTOINCREMENT,
  stream TEXT NOT NULL,
  key TEXT,
  payload TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX __alkstore_events_stream ON __alkstore_events (stream, "offset");

-- The highest offset trimmed away, per stream.
CREATE TABLE __alkstore_floors (
  stream TEXT PRIMARY KEY,
  "offset" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE __alkstore_consumers (
  stream TEXT NOT NULL,
  consumer TEXT NOT NULL,
  "offset" INTEGER NOT NULL,
  PRIMARY KEY (stream, consumer)
) STRICT, WITHOUT ROWID;

-- A release keeps the row: the token strictly increases per name.
CREATE TABLE __alkstore_locks (
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  token INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Wakes that no growing id tells of: notify, and old rows that became claimable. One row a topic.
CREATE TABLE __alkstore_wakes (
  topic TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  woken_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX __alkstore_wakes_seq ON __alkstore_wakes (seq);
`,
];
