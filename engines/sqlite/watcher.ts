import type { Topic, WakeListener, WakeSource } from "../../core/engine.ts";
import { ClosedError, type DatabaseError } from "../../core/errors.ts";
import { Listeners } from "./listeners.ts";
import type { Moved } from "./moved.ts";
import { WalTouch } from "./touch.ts";
import { WakeLoop, type WakeLoopOptions } from "./wake_loop.ts";

/** What a {@linkcode Watcher} needs. */
export type WatcherOptions = WakeLoopOptions;

/**
 * Tells when something in the database file moves, whichever process commits it. One per file and
 * process, shared by its stores.
 *
 * The commits of this process are told by the writer, through {@linkcode Watcher.committed}. Those of
 * others are found by a loop, which runs while somebody listens and then keeps the process alive.
 */
export class Watcher implements WakeSource {
  readonly #options: WatcherOptions;
  readonly #listeners: Listeners;
  readonly #loop: WakeLoop;
  readonly #touch: WalTouch;
  /** What calls of `watch` wait for while the loop is not armed. */
  #arming: PromiseWithResolvers<void> | undefined;
  #waiting = 0;
  #dead: DatabaseError | undefined;
  #closing: Promise<void> | undefined;

  /** Starts nothing: the loop begins with the first {@linkcode Watcher.watch}. */
  constructor(options: WatcherOptions) {
    this.#options = options;
    this.#touch = new WalTouch(options.path);
    this.#listeners = new Listeners((error) => options.onEvent({ type: "error", error }));
    this.#loop = new WakeLoop(options, this.#listeners, {
      armed: () => this.#settle((arming) => arming.resolve()),
      refused: (error) => this.#settle((arming) => arming.reject(error)),
      died: (error) => this.#die(error),
    });
  }

  /** Whether wakes come from file events or from polling. */
  get mode(): "push" | "poll" {
    return this.reason === undefined ? "push" : "poll";
  }

  /** Why it polls. */
  get reason(): string | undefined {
    return this.#loop.pollReason;
  }

  /** Whether anybody listens. */
  get isUsed(): boolean {
    return !this.#listeners.isEmpty;
  }

  /** What ended it: the file was replaced, deleted or cannot be read. */
  get dead(): Error | undefined {
    return this.#dead;
  }

  /**
   * Calls `listener` whenever `topic` may have moved, until the returned function is called.
   * Resolves when armed: nothing committed after that is missed. Waits while the database is busy.
   * Rejects with `ClosedError` when the source is dead (its death in `cause`) or closed, and with
   * `DatabaseError` when the connection cannot be opened.
   */
  async watch(topic: Topic, listener: WakeListener): Promise<() => void> {
    this.#waiting++;
    try {
      await this.#armed();
      // It may have died or been closed in the turn in which it was armed.
      this.#assertAlive();
      return this.#add(topic, listener);
    } finally {
      this.#waiting--;
      this.#stopIfUnused();
    }
  }

  /**
   * Wakes the listeners of this process after a commit of this process, and keeps the loop from doing
   * it again. Call it synchronously after the COMMIT. Works without the loop.
   */
  committed(moved: Moved): void {
    this.#loop.skip(moved);
    this.#listeners.wake(moved.topics);
  }

  /**
   * Tells other processes of a commit under `synchronous=FULL`, which is visible only after its file
   * event, by another event. Takes no time here and never fails.
   */
  touch(): void {
    if (this.#closing === undefined) this.#touch.touch();
  }

  /** Ends it without a word to the listeners; resolves when nothing is left open. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#listeners.clear();
    this.#loop.stop();
    this.#settle((arming) => arming.reject(closedError()));
    await Promise.all([this.#loop.stopped(), this.#touch.close()]);
  }

  #armed(): Promise<void> {
    this.#assertAlive();
    if (this.#loop.isArmed) return Promise.resolve();
    const { promise } = this.#arming ??= Promise.withResolvers();
    this.#loop.start();
    return promise;
  }

  #assertAlive(): void {
    if (this.#closing !== undefined) throw closedError();
    if (this.#dead !== undefined) throw closedError(this.#dead);
  }

  #settle(end: (arming: PromiseWithResolvers<void>) => void): void {
    const arming = this.#arming;
    this.#arming = undefined;
    if (arming !== undefined) end(arming);
  }

  #add(topic: Topic, listener: WakeListener): () => void {
    const remove = this.#listeners.add(topic, listener);
    this.#loop.hasten();
    return () => {
      remove();
      this.#stopIfUnused();
    };
  }

  #stopIfUnused(): void {
    if (this.#waiting === 0 && this.#listeners.isEmpty) this.#loop.stop();
  }

  #die(error: DatabaseError): void {
    this.#dead = error;
    this.#settle((arming) => arming.reject(closedError(error)));
    this.#options.onEvent({ type: "error", error });
    this.#listeners.end(error);
  }
}

function closedError(cause?: Error): ClosedError {
  return cause === undefined
    ? new ClosedError("Cannot watch: the store is closed")
    : new ClosedError("Cannot watch: the database file was lost", { cause });
}
