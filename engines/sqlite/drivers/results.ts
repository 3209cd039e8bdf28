/** What the drivers share: result codes read from messages, and integers that JavaScript can hold. */

/** The primary result code by what SQLite's own message starts with. */
const CODES: readonly (readonly [start: string, code: number])[] = [
  ["database is locked", 5],
  ["database table is locked", 6],
  ["database schema is locked", 6],
  ["out of memory", 7],
  ["attempt to write a readonly database", 8],
  ["interrupted", 9],
  ["disk I/O error", 10],
  ["database disk image is malformed", 11],
  ["malformed database schema", 11],
  ["database or disk is full", 13],
  ["unable to open database", 14],
  ["locking protocol", 15],
  ["database schema has changed", 17],
  ["string or blob too big", 18],
  ["cannot store", 19],
  ["datatype mismatch", 20],
  ["column index out of range", 25],
  ["file is not a database", 26],
];

/** The primary result code of a message SQLite wrote, 1 (SQLITE_ERROR) where none other fits. */
export function resultCodeOfMessage(message: string): number {
  for (const [start, code] of CODES) if (message.startsWith(start)) return code;
  return message.includes("constraint failed") ? 19 : 1;
}

/** Returns `row`; throws where a column holds an integer that would have been rounded. */
export function exact<Row>(row: Row): Row {
  for (const column in row) {
    const value: unknown = row[column];
    if (
      typeof value === "bigint" ||
      (typeof value === "number" &&
        (value > Number.MAX_SAFE_INTEGER || value < -Number.MAX_SAFE_INTEGER))
    ) {
      throw new RangeError(`Cannot read column "${column}": the integer is above 2^53 - 1`);
    }
  }
  return row;
}
