import { statSync } from "node:fs";
import type { EngineEvent } from "../../core/engine.ts";
import type { SqliteDatabase, SqliteDriver } from "./driver.ts";
import { FileIdentity } from "./identity.ts";
import type { Moved } from "./moved.ts";
import { Slot } from "./slot.ts";
import { Watcher } from "./watcher.ts";

/** How often to look whether the file is still there, in milliseconds. */
const LOOK_AGAIN = 200;

/** How a store looks for changes. */
export interface WatchSettings {
  readonly watchFiles: boolean;
  readonly poll: { readonly min: number; readonly max: number } | false;
}

interface SharedWatcher {
  readonly watcher: Watcher;
  readonly listeners: Set<(event: EngineEvent) => void>;
}

/**
 * What all stores of one file share in a process: the right to write, and the loop that tells what
 * moved. Keyed by device and inode, so that links and relative paths are the same file.
 */
export class SharedFile {
  static readonly #files: Map<string, SharedFile> = new Map();

  readonly slot: Slot = new Slot();
  readonly path: string;
  readonly identity: string;
  readonly #driver: SqliteDriver;
  readonly #watchers: Map<string, SharedWatcher> = new Map();
  readonly #identity: FileIdentity;
  #lookedAt = 0;
  #loss: Error | undefined;
  #references = 0;

  private constructor(path: string, identity: string, driver: SqliteDriver) {
    this.path = path;
    this.identity = identity;
    this.#driver = driver;
    this.#identity = new FileIdentity(path);
  }

  /**
   * Refuses a second SQLite library on a file this process has open: POSIX locks belong to the
   * process, so the first close of either would drop the locks of both, and commits would be lost.
   * Call it before the library opens the file.
   */
  static assertSameLibrary(path: string, driver: SqliteDriver): void {
    const identity = identityOf(path);
    const file = identity === undefined ? undefined : SharedFile.#files.get(identity);
    if (file === undefined || file.#driver.name === driver.name) return;
    throw new TypeError(
      `Cannot open ${
        JSON.stringify(path)
      } with driver "${driver.name}": this process has it open ` +
        `with driver "${file.#driver.name}", and two SQLite libraries drop each other's locks`,
    );
  }

  /** The shared part of an existing file; released as often as it was acquired. */
  static acquire(path: string, driver: SqliteDriver): SharedFile {
    const identity = identityOf(path) ?? path;
    let file = SharedFile.#files.get(identity);
    if (file === undefined) {
      file = new SharedFile(path, identity, driver);
      SharedFile.#files.set(identity, file);
    }
    file.#references++;
    return file;
  }

  /** The watcher for these settings; `open` opens its connection. */
  watcher(
    settings: WatchSettings,
    open: () => SqliteDatabase,
    onEvent: (event: EngineEvent) => void,
  ): Watcher {
    const key = JSON.stringify(settings);
    let shared = this.#watchers.get(key);
    if (shared === undefined) {
      const listeners = new Set<(event: EngineEvent) => void>();
      const watcher = new Watcher({
        path: this.path,
        open,
        resultCode: (error) => this.#driver.resultCode(error),
        ...settings,
        onEvent: (event) => {
          for (const listener of [...listeners]) listener(event);
        },
      });
      shared = { watcher, listeners };
      this.#watchers.set(key, shared);
    }
    shared.listeners.add(onEvent);
    return shared.watcher;
  }

  /** Whether anybody in this process waits for something. */
  get isWatched(): boolean {
    for (const { watcher } of this.#watchers.values()) {
      if (watcher.isUsed) return true;
    }
    return false;
  }

  /**
   * What became of the file, if it is no longer at its path: SQLite would go on and lose every commit.
   * Looks now and then only: a look costs as much as half a commit († 14 µs in Deno).
   */
  loss(): Error | undefined {
    const now = performance.now();
    if (this.#loss === undefined && now - this.#lookedAt > LOOK_AGAIN) {
      this.#lookedAt = now;
      const { loss } = this.#identity;
      if (loss !== undefined) this.#loss = new Error(`The database file was ${loss}: ${this.path}`);
    }
    return this.#loss;
  }

  /** Tells all waiters of this process of a commit. */
  committed(moved: Moved): void {
    for (const { watcher } of this.#watchers.values()) watcher.committed(moved);
  }

  /** Tells other processes of a commit that became visible after its file event. */
  touch(): void {
    for (const { watcher } of this.#watchers.values()) return watcher.touch();
  }

  /** Gives up one reference and its watcher; the last one ends everything. */
  async release(onEvent: (event: EngineEvent) => void): Promise<void> {
    const closing: Promise<void>[] = [];
    for (const [key, { watcher, listeners }] of this.#watchers) {
      if (!listeners.delete(onEvent) || listeners.size > 0) continue;
      this.#watchers.delete(key);
      closing.push(watcher.close());
    }
    if (--this.#references === 0) {
      if (SharedFile.#files.get(this.identity) === this) SharedFile.#files.delete(this.identity);
      closing.push(this.slot.settle());
    }
    await Promise.all(closing);
  }
}

/** Device and inode, without opening the file. */
export function identityOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}
