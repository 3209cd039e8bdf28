/** A database, processes that write to it, and listeners that remember. */
import type { EngineEvent, WakeListener } from "../../core/engine.ts";
import type { SqliteDatabase } from "../../engines/sqlite/driver.ts";
import { nodeDriver } from "../../engines/sqlite/drivers/node.ts";
import { Moved } from "../../engines/sqlite/moved.ts";
import { META, MIGRATIONS } from "../../engines/sqlite/schema.ts";
import { Watcher, type WatcherOptions } from "../../engines/sqlite/watcher.ts";
import { soon } from "../contract/wait.ts";
import type { Step } from "./peer.ts";

/** Another process that has the database open. */
export class Peer {
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #answers: ReadableStreamDefaultReader<string>;
  #rest = "";

  constructor(path: string) {
    this.#process = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", import.meta.resolve("./peer.ts"), path],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#input = this.#process.stdin.getWriter();
    this.#answers = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Takes the steps; rejects with the message of the one that fails. */
  async run(...steps: Step[]): Promise<void> {
    await this.#input.write(new TextEncoder().encode(`${JSON.stringify(steps)}\n`));
    const answer = await soon(this.#readLine(), "the answer of the other process");
    if (answer !== "") throw new Error(answer);
  }

  async close(): Promise<void> {
    await this.#input.close();
    await this.#answers.cancel();
    await this.#process.status;
  }

  async #readLine(): Promise<string> {
    while (!this.#rest.includes("\n")) {
      const { value } = await this.#answers.read();
      if (value === undefined) throw new Error("The other process has ended");
      this.#rest += value;
    }
    const [line = "", ...rest] = this.#rest.split("\n");
    this.#rest = rest.join("\n");
    return line;
  }
}

/** Remembers what it is told; with `observe`, also what there was to see at each wake. */
export class Ear implements WakeListener {
  wakes = 0;
  death: Error | undefined;
  seen = 0;
  readonly #observe: () => number;
  #onCall = Promise.withResolvers<void>();

  constructor(observe: () => number = () => 0) {
    this.#observe = observe;
  }

  wake(): void {
    this.wakes++;
    this.seen = Math.max(this.seen, this.#observe());
    this.#called();
  }

  end(cause: Error): void {
    this.death = cause;
    this.#called();
  }

  /** Resolves when a call makes `condition` true, or when it is. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await soon(this.#onCall.promise, "a call of the listener");
  }

  /** Resolves at the next wake. */
  async next(): Promise<void> {
    const before = this.wakes;
    await this.until(() => this.wakes > before);
  }

  #called(): void {
    this.#onCall.resolve();
    this.#onCall = Promise.withResolvers();
  }
}

/** A listener that does nothing. */
export const nothing: WakeListener = { wake: () => {}, end: () => {} };

/** A commit of one job, as the writer reports it. */
export function enqueued(queue: string, id: number): Moved {
  const moved = new Moved();
  moved.topics.add(`queue:${queue}`);
  moved.draw("jobs", id, id);
  return moved;
}

/** A database file in a folder of its own, and everything that was opened on it. */
export class Site implements AsyncDisposable {
  readonly folder: string = Deno.realPathSync(Deno.makeTempDirSync());
  readonly path: string = `${this.folder}/app.db`;
  readonly events: EngineEvent[] = [];
  readonly #closers: (() => void | Promise<void>)[] = [];

  constructor(journal: "wal" | "delete" = "wal") {
    const database = this.connect();
    database.prepare(`PRAGMA journal_mode = ${journal}`).get();
    for (const sql of [META, ...MIGRATIONS]) database.exec(sql);
  }

  /** Another connection of this process. */
  connect(): SqliteDatabase {
    const database = nodeDriver.open(this.path);
    this.#closers.push(() => database.close());
    return database;
  }

  peer(): Peer {
    const peer = new Peer(this.path);
    this.#closers.push(() => peer.close());
    return peer;
  }

  /** A watcher that hears file events and polls for nothing. */
  watcher(options: Partial<WatcherOptions> = {}): Watcher {
    const watcher = new Watcher({
      path: this.path,
      open: () => nodeDriver.open(this.path),
      resultCode: nodeDriver.resultCode,
      watchFiles: true,
      poll: false,
      onEvent: (event) => this.events.push(event),
      ...options,
    });
    this.#closers.push(() => watcher.close());
    return watcher;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** The database, with `before` called ahead of each row that is read. */
export function tapped(database: SqliteDatabase, before: (sql: string) => void): SqliteDatabase {
  return {
    connection: database.connection,
    get inTransaction() {
      return database.inTransaction;
    },
    exec: (text) => database.exec(text),
    prepare: <Row>(text: string) => {
      const statement = database.prepare<Row>(text);
      return {
        run: (...parameters) => statement.run(...parameters),
        all: (...parameters) => statement.all(...parameters),
        get: (...parameters) => {
          before(text);
          return statement.get(...parameters);
        },
      };
    },
    close: () => database.close(),
  };
}

/** Statements as the engine might write them. */
export const sql = {
  enqueue: (queue: string): string =>
    `INSERT INTO __alkstore_jobs (queue, state, priority, run_at, created_at, attempts,
      max_attempts, visibility, backoff, claim, payload)
    VALUES ('${queue}', 'ready', 0, 0, 0, 0, 1, 1000, '', 0, '{}')`,
  publish: (stream: string): string =>
    `INSERT INTO __alkstore_events (stream, payload, created_at) VALUES ('${stream}', '{}', 0)`,
  wake: (topic: string): string =>
    `INSERT INTO __alkstore_wakes (topic, seq, woken_at)
    VALUES ('${topic}', (SELECT coalesce(max(seq), 0) + 1 FROM __alkstore_wakes), 0)
    ON CONFLICT (topic) DO UPDATE SET seq = excluded.seq`,
};

/** Reads the highest wake number, 0 while somebody holds the file. */
export function wakeNumbers(database: SqliteDatabase): () => number {
  const read = database.prepare<{ seq: number | null }>(
    "SELECT max(seq) AS seq FROM __alkstore_wakes",
  );
  return () => {
    try {
      return read.get()?.seq ?? 0;
    } catch (error) {
      if (nodeDriver.resultCode(error) === 5) return 0;
      throw error;
    }
  };
}
