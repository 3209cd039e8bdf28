import { type FSWatcher, lstatSync, watch } from "node:fs";
import { setImmediate } from "node:timers";
import { Alarm, Backoffs } from "../../core/timers.ts";

/** What is told of a database file. */
export interface FileEventsOptions {
  /** Path of the database file. */
  readonly path: string;
  /** The database may have been written. */
  readonly onWrite: () => void;
  /** The `-wal` file was deleted or moved; the one in its place is watched from here on. */
  readonly onRename: () => void;
  /** There are no events any more; it will be tried again. */
  readonly onLost: (reason: string, cause: unknown) => void;
  /** There are events again. */
  readonly onRestored: () => void;
  /** Milliseconds until it is tried again, doubling from `first` to `most`. */
  readonly retry?: { readonly first: number; readonly most: number };
}

const RETRY = { first: 10_000, most: 600_000 };

/** Milliseconds without an error after which a second attempt counts: some errors come late. */
const PROOF = 100;

/**
 * Tells when a database may have been written, from events of its `-wal` file, which must exist.
 *
 * Of that file alone, never of the directory or the database file: † Deno opens and closes whatever
 * file an event is about, and closing a descriptor of the database or `-shm` file drops all locks
 * that this process has on it. Nobody locks the `-wal` file.
 */
export class FileEvents {
  readonly #options: FileEventsOptions;
  readonly #wal: string;
  readonly #retries: Backoffs;
  readonly #retry: Alarm = new Alarm(() => this.#open());
  readonly #proof: Alarm = new Alarm(() => this.#restore());
  #watcher: FSWatcher | undefined;
  #lostBecause: string | undefined;
  #closing: Promise<unknown> = Promise.resolve();

  /** Starts nothing. */
  constructor(options: FileEventsOptions) {
    const { first, most } = options.retry ?? RETRY;
    this.#options = options;
    this.#wal = `${options.path}-wal`;
    this.#retries = new Backoffs(first, most);
  }

  /** Why there are no events although there should be. */
  get lostBecause(): string | undefined {
    return this.#lostBecause;
  }

  /** Starts to watch, unless it does or tries to. */
  start(): void {
    if (this.#watcher === undefined && this.#lostBecause === undefined) this.#open();
  }

  /** Tells nothing more and forgets that events were lost. */
  stop(): void {
    this.#close();
    this.#lostBecause = undefined;
    this.#retries.reset();
  }

  /** Resolves when nothing of what was stopped is left. */
  async stopped(): Promise<void> {
    await this.#closing;
  }

  #open(): void {
    try {
      // Deno before 2.7 throws what it cannot watch out of a timer, where it ends the process: learn
      // of a missing file or permission here.
      lstatSync(this.#wal);
      const watcher = watch(this.#wal);
      this.#watcher = watcher;
      watcher.on("change", (type) => {
        if (this.#watcher === watcher) this.#hear(type);
      });
      watcher.on("error", (error) => {
        if (this.#watcher === watcher) this.#lose(error);
      });
      if (this.#lostBecause !== undefined) this.#proof.set(PROOF);
    } catch (error) {
      this.#lose(error);
    }
  }

  #hear(type: string): void {
    if (type === "rename") {
      this.#close();
      this.#open();
      this.#options.onRename();
    }
    this.#options.onWrite();
  }

  #lose(error: unknown): void {
    this.#close();
    this.#retry.set(this.#retries.next());
    if (this.#lostBecause !== undefined) return;
    this.#lostBecause = error instanceof Error ? error.message : String(error);
    this.#options.onLost(this.#lostBecause, error);
  }

  #restore(): void {
    this.#lostBecause = undefined;
    this.#retries.reset();
    this.#options.onRestored();
  }

  #close(): void {
    this.#retry.clear();
    this.#proof.clear();
    this.#watcher?.close();
    this.#watcher = undefined;
    // The handle is gone a turn later; the "close" event comes before that, or after an error never.
    this.#closing = Promise.all([this.#closing, new Promise<void>((done) => setImmediate(done))]);
  }
}
