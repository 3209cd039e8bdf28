/** The statements of the locks. */

/** The token is drawn in the winning upsert. Parameters: name, owner, expires_at, now. */
export const TRY_LOCK = `
INSERT INTO __alkstore_locks (name, owner, token, expires_at) VALUES (?1, ?2, 1, ?3)
ON CONFLICT DO UPDATE
SET owner = excluded.owner, token = token + 1, expires_at = excluded.expires_at
WHERE expires_at <= ?4
RETURNING token`;

/** Parameters: name, token, now, expires_at. */
export const RENEW_LOCK = `
UPDATE __alkstore_locks SET expires_at = ?4
WHERE name = ?1 AND token = ?2 AND expires_at > ?3`;

/** The row stays, for the token. Parameters: name, token. */
export const RELEASE_LOCK = `
UPDATE __alkstore_locks SET expires_at = 0 WHERE name = ? AND token = ? AND expires_at > 0`;

/** Parameters: name, token, now. */
export const LOCK_IS_HELD = `
SELECT 1 AS held FROM __alkstore_locks WHERE name = ? AND token = ? AND expires_at > ?`;
