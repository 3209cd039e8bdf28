import type { Topic, TopicKind } from "../../core/engine.ts";
import type { SqliteDatabase, SqliteStatement } from "./driver.ts";
import type { IdRange, Moved } from "./moved.ts";

/** The highest numbers drawn, read in one statement and so of one moment. */
interface Counters {
  jobs: number;
  events: number;
  wakes: number;
  /** The highest wake number that was pruned. */
  readonly floor: number;
}

/** What moved between two readings. */
export interface Reading {
  readonly topics: Set<Topic>;
  /** What tells the topics is gone: all may have moved. */
  readonly isGap: boolean;
}

// Changes when another connection, of any process, has committed since the last look; not with each
// commit, so it cannot count them. 3 µs when nothing changed.
const VERSION = "PRAGMA data_version";

// The counters and not max(id): rows come and go between two looks, jobs within milliseconds.
const COUNTERS = `
SELECT
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = '__alkstore_jobs'), 0) AS jobs,
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = '__alkstore_events'), 0) AS events,
  coalesce((SELECT max(seq) FROM __alkstore_wakes), 0) AS wakes,
  coalesce((SELECT value FROM __alkstore_meta WHERE key = 'wake_floor'), 0) AS floor`;

const QUEUES = "SELECT DISTINCT queue AS name FROM __alkstore_jobs WHERE id > ?";
const STREAMS = `SELECT DISTINCT stream AS name FROM __alkstore_events WHERE "offset" > ?`;
const TOPICS = "SELECT topic FROM __alkstore_wakes WHERE seq > ?";

/**
 * Reads what other connections have committed, from counters that grow with every enqueue, publish
 * and notify. Has a connection of its own, which never stays in a read transaction: inside one,
 * `data_version` would stand still.
 */
export class Changes {
  readonly #database: SqliteDatabase;
  readonly #versions: SqliteStatement<{ data_version: number }>;
  readonly #counters: SqliteStatement<Counters>;
  readonly #queues: SqliteStatement<{ name: string }>;
  readonly #streams: SqliteStatement<{ name: string }>;
  readonly #topics: SqliteStatement<{ topic: Topic }>;
  #version: number;
  #seen: Counters;

  /** Reads the baseline; what is committed after that will be read. */
  private constructor(database: SqliteDatabase) {
    this.#database = database;
    this.#versions = database.prepare(VERSION);
    this.#counters = database.prepare(COUNTERS);
    this.#queues = database.prepare(QUEUES);
    this.#streams = database.prepare(STREAMS);
    this.#topics = database.prepare(TOPICS);
    // Before the counters: a commit between the two must look new.
    this.#version = this.#readVersion();
    this.#seen = this.#readCounters();
  }

  /** Opens a connection and reads the baseline. Throws what the driver throws, and leaves nothing. */
  static open(open: () => SqliteDatabase): Changes {
    const database = open();
    try {
      return new Changes(database);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /**
   * What moved since the last reading, or nothing. `isWanted` tells which kinds of topics somebody
   * listens for. Throws what the driver throws; then the next reading reads it all again.
   */
  read(isWanted: (kind: TopicKind) => boolean): Reading | undefined {
    const version = this.#readVersion();
    if (version === this.#version) return undefined;
    // Before the rows: what is committed between the two is read twice instead of never.
    const counters = this.#readCounters();
    const reading = {
      topics: this.#readTopics(counters, isWanted),
      isGap: isGap(this.#seen, counters),
    };
    this.#version = version;
    this.#seen = counters;
    return reading;
  }

  /**
   * Notes a commit of this process, whose topics were woken: they are not read again, unless another
   * process has committed in between.
   */
  skip(moved: Moved): void {
    for (const range of ["jobs", "events", "wakes"] as const) {
      const drawn: IdRange | undefined = moved[range];
      if (drawn?.first === this.#seen[range] + 1) this.#seen[range] = drawn.last;
    }
  }

  /** Closes the connection. */
  close(): void {
    this.#database.close();
  }

  #readTopics(counters: Counters, isWanted: (kind: TopicKind) => boolean): Set<Topic> {
    const topics = new Set<Topic>();
    const seen = this.#seen;
    if (counters.jobs > seen.jobs && isWanted("queue")) {
      for (const { name } of this.#queues.all(seen.jobs)) topics.add(`queue:${name}`);
    }
    if (counters.events > seen.events && isWanted("stream")) {
      for (const { name } of this.#streams.all(seen.events)) topics.add(`stream:${name}`);
    }
    if (counters.wakes > seen.wakes) {
      for (const { topic } of this.#topics.all(seen.wakes)) topics.add(topic);
    }
    return topics;
  }

  #readVersion(): number {
    return must(this.#versions.get()).data_version;
  }

  #readCounters(): Counters {
    const row = must(this.#counters.get());
    // All wakes may have been pruned; the numbers go on above the floor.
    return { ...row, wakes: Math.max(row.wakes, row.floor) };
  }
}

/** The row of a statement that always gives one. */
function must<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error("Cannot read what moved: SQLite gave no row");
  return row;
}

/** Whether rows between the two are gone: wakes pruned, or an older database restored in place. */
function isGap(seen: Counters, now: Counters): boolean {
  return now.floor > seen.wakes || now.jobs < seen.jobs || now.events < seen.events ||
    now.wakes < seen.wakes;
}
