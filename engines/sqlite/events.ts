/** The stream operations, in whatever transaction is open. */

import type { EventPage, NewEvent, OffsetSaving, StreamFacts } from "../../core/engine.ts";
import * as sql from "./sql/events.ts";
import type { Statements } from "./statements.ts";
import type { Work } from "./work.ts";

/** Appends events; their offsets. One writer at a time: offset order is commit order. */
export function publish(
  { statements, now, moved }: Work,
  stream: string,
  events: readonly NewEvent[],
): number[] {
  const [event] = events;
  const { lastInsertRowid: last } = events.length === 1
    ? statements.get(sql.PUBLISH).run(stream, event!.key ?? null, event!.payload, now)
    : statements.get(sql.PUBLISH_MANY).run(
      stream,
      now,
      JSON.stringify(events.map(({ key, payload }) => [key ?? null, payload])),
    );
  const first = last - events.length + 1;
  moved.draw("events", first, last);
  moved.topics.add(`stream:${stream}`);
  return events.map((_, index) => first + index);
}

/** Moves a consumer forward, with `from` only from there. */
export function saveOffset(
  { statements }: Work,
  stream: string,
  consumer: string,
  offset: number,
  from: number | undefined,
): OffsetSaving {
  if (offset > head(statements, stream)) return "beyond";
  if (from !== undefined && savedOffset(statements, stream, consumer) !== from) return "kept";
  if (offset === 0) return "kept";
  const { changes } = statements.get(sql.SAVE_OFFSET).run(stream, consumer, offset);
  return changes === 1 ? "advanced" : "kept";
}

/** Sets a consumer's offset, in either direction. */
export function resetOffset(
  { statements }: Work,
  stream: string,
  consumer: string,
  offset: number,
): OffsetSaving {
  if (offset > head(statements, stream)) return "beyond";
  statements.get(sql.RESET_OFFSET).run(stream, consumer, offset);
  return "advanced";
}

/** Forgets a consumer. */
export function dropConsumer({ statements }: Work, stream: string, consumer: string): boolean {
  return statements.get(sql.DROP_CONSUMER).run(stream, consumer).changes === 1;
}

/** Deletes the oldest events up to `offset`, at most `limit`, and raises the floor over them. */
export function trim(
  { statements }: Work,
  stream: string,
  offset: number,
  limit: number,
): number {
  const end = statements.get<{ last: number | null }>(sql.TRIM_END).get(stream, offset, limit);
  if (typeof end?.last !== "number") return 0;
  statements.get(sql.RAISE_FLOOR).run(stream, end.last);
  return statements.get(sql.TRIM).run(stream, end.last).changes;
}

/** The events above `after`, and the floor. */
export function readEvents(
  statements: Statements,
  stream: string,
  after: number,
  limit: number,
): EventPage {
  interface Columns {
    readonly offset: number;
    readonly key: string | null;
    readonly payload: string;
    readonly created_at: number;
  }
  const rows = statements.get<Columns>(sql.READ_EVENTS).all(stream, after, limit);
  // After the events: a trim between the two reads is then seen, not missed.
  const floor = statements.get<{ offset: number }>(sql.FLOOR).get(stream)?.offset ?? 0;
  return {
    events: rows.map((row) => ({
      offset: row.offset,
      key: row.key ?? undefined,
      payload: row.payload,
      createdAt: row.created_at,
    })),
    floor,
  };
}

/** The offset a consumer has saved, 0 when none. */
export function savedOffset(statements: Statements, stream: string, consumer: string): number {
  return statements.get<{ offset: number }>(sql.SAVED_OFFSET).get(stream, consumer)?.offset ?? 0;
}

/** Head, first offset and consumers. */
export function streamFacts(statements: Statements, stream: string): StreamFacts {
  const first = statements.get<{ first: number | null }>(sql.FIRST_EVENT).get(stream)?.first;
  return {
    head: head(statements, stream),
    first: first ?? undefined,
    consumers: statements.get<StreamFacts["consumers"][number]>(sql.CONSUMERS).all(stream)
      .map(({ name, offset, lag }) => ({ name, offset, lag })),
  };
}

function head(statements: Statements, stream: string): number {
  return statements.get<{ head: number }>(sql.HEAD).get(stream)?.head ?? 0;
}
