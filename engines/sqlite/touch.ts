import { utimes } from "node:fs";
import { clearImmediate, setImmediate } from "node:timers";

/**
 * Makes a file event after a commit: sets the modification time of the `-wal` file.
 *
 * Under `synchronous=FULL` the WAL is written, and its event sent, before the fsync and thus before
 * the commit is visible. Without a second event the watchers of other processes find it by their
 * re-checks, a millisecond later.
 */
export class WalTouch {
  readonly #path: string;
  #immediate: ReturnType<typeof setImmediate> | undefined;
  #isFlying = false;
  #isDue = false;
  #onIdle: () => void = () => {};

  /** `path` is the database file's; the `-wal` file need not exist. */
  constructor(path: string) {
    this.#path = `${path}-wal`;
  }

  /**
   * Sends the event soon; nothing is waited for and nothing fails. One call is in flight at a time,
   * and it speaks for all commits before it.
   */
  touch(): void {
    if (this.#isFlying) this.#isDue = true;
    // Not in the caller's turn: even the asynchronous call takes 30 µs of it.
    else this.#immediate ??= setImmediate(() => this.#send());
  }

  /** Sends nothing more; resolves when nothing is in flight. */
  close(): Promise<void> {
    clearImmediate(this.#immediate);
    this.#isDue = false;
    if (!this.#isFlying) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle = resolve);
  }

  #send(): void {
    this.#immediate = undefined;
    this.#isFlying = true;
    const now = new Date();
    try {
      // Not one's own file, no file, no permission: then the re-checks must do.
      utimes(this.#path, now, now, () => this.#land());
    } catch {
      this.#land();
    }
  }

  #land(): void {
    this.#isFlying = false;
    this.#onIdle();
    if (!this.#isDue) return;
    this.#isDue = false;
    this.touch();
  }
}
