/** The statements of the wakes that no growing id tells of. */

/**
 * One row a topic, moved to a new number: as many rows as topics, however often they are woken. The
 * number counts on from the floor when all rows were pruned. Parameters: topic, now.
 */
export const WAKE = `
INSERT INTO __alkstore_wakes (topic, seq, woken_at)
VALUES (?1, (SELECT max(
  coalesce((SELECT max(seq) FROM __alkstore_wakes), 0),
  coalesce((SELECT value FROM __alkstore_meta WHERE key = 'wake_floor'), 0))) + 1, ?2)
ON CONFLICT DO UPDATE SET seq = excluded.seq, woken_at = excluded.woken_at
RETURNING seq`;

/** Parameters: topic. */
export const WAKE_NUMBER = `SELECT seq FROM __alkstore_wakes WHERE topic = ?`;

/** The last id an AUTOINCREMENT table has drawn. Parameters: table. */
export const LAST_DRAWN = `SELECT seq FROM sqlite_sequence WHERE name = ?`;

/** The highest number of the rows to prune, if there are any. Parameters: woken before. */
export const PRUNABLE_WAKES = `
SELECT max(seq) AS floor FROM __alkstore_wakes WHERE woken_at < ?`;

/** A watcher that has seen less than the floor wakes everybody. Parameters: floor. */
export const RAISE_WAKE_FLOOR = `
INSERT INTO __alkstore_meta (key, value) VALUES ('wake_floor', ?1)
ON CONFLICT DO UPDATE SET value = max(value, ?1)`;

/** Parameters: floor. */
export const PRUNE_WAKES = `DELETE FROM __alkstore_wakes WHERE seq <= ?`;
