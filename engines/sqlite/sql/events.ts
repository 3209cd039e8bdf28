/** The statements of the streams. */

/** Parameters: stream, key, payload, now. */
export const PUBLISH = `
INSERT INTO __alkstore_events (stream, key, payload, created_at) VALUES (?, ?, ?, ?)`;

/** Parameters: stream, now, a JSON array of [key, payload]. */
export const PUBLISH_MANY = `
INSERT INTO __alkstore_events (stream, key, payload, created_at)
SELECT ?1, value ->> 0, value ->> 1, ?2 FROM json_each(?3) AS entry ORDER BY entry.key`;

/** Parameters: stream, after, limit. */
export const READ_EVENTS = `
SELECT "offset", key, payload, created_at FROM __alkstore_events
WHERE stream = ? AND "offset" > ? ORDER BY "offset" LIMIT ?`;

/** Parameters: stream. */
export const FLOOR = `SELECT "offset" FROM __alkstore_floors WHERE stream = ?`;

/** The highest offset ever drawn, also when everything was trimmed. Parameters: stream. */
export const HEAD = `
SELECT max(
  coalesce((SELECT max("offset") FROM __alkstore_events WHERE stream = ?1), 0),
  coalesce((SELECT "offset" FROM __alkstore_floors WHERE stream = ?1), 0)) AS head`;

/** Parameters: stream, consumer. */
export const SAVED_OFFSET = `
SELECT "offset" FROM __alkstore_consumers WHERE stream = ? AND consumer = ?`;

/** Moves forward only. Parameters: stream, consumer, offset. */
export const SAVE_OFFSET = `
INSERT INTO __alkstore_consumers (stream, consumer, "offset") VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET "offset" = excluded."offset" WHERE excluded."offset" > "offset"`;

/** Parameters: stream, consumer, offset. */
export const RESET_OFFSET = `
INSERT INTO __alkstore_consumers (stream, consumer, "offset") VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET "offset" = excluded."offset"`;

/** Parameters: stream, consumer. */
export const DROP_CONSUMER = `
DELETE FROM __alkstore_consumers WHERE stream = ? AND consumer = ?`;

/** The last offset of one step of a trim. Parameters: stream, offset, limit. */
export const TRIM_END = `
SELECT max("offset") AS last FROM (
  SELECT "offset" FROM __alkstore_events WHERE stream = ? AND "offset" <= ?
  ORDER BY "offset" LIMIT ?)`;

/** Parameters: stream, offset. */
export const TRIM = `DELETE FROM __alkstore_events WHERE stream = ? AND "offset" <= ?`;

/** Parameters: stream, offset. */
export const RAISE_FLOOR = `
INSERT INTO __alkstore_floors (stream, "offset") VALUES (?, ?)
ON CONFLICT DO UPDATE SET "offset" = max("offset", excluded."offset")`;

/** Parameters: stream. */
export const FIRST_EVENT = `
SELECT min("offset") AS first FROM __alkstore_events WHERE stream = ?`;

/** Parameters: stream. */
export const CONSUMERS = `
SELECT consumer AS name, "offset", (
    SELECT count(*) FROM __alkstore_events AS event
    WHERE event.stream = consumer.stream AND event."offset" > consumer."offset") AS lag
FROM __alkstore_consumers AS consumer WHERE stream = ? ORDER BY consumer`;
