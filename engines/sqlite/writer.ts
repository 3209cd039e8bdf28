import { ClosedError, DatabaseError } from "../../core/errors.ts";
import { Alarm } from "../../core/timers.ts";
import type { SqliteDatabase, SqliteDriver } from "./driver.ts";
import { asCommitError, asDatabaseError, isBusy } from "./errors.ts";
import { Moved } from "./moved.ts";
import { pause } from "./pause.ts";
import type { Entry, Slot } from "./slot.ts";
import { Statements } from "./statements.ts";
import type { Work } from "./work.ts";

/** How many calls one group commit takes at most: it runs without a break. */
const GROUP = 500;

/** What the writer needs of its surroundings. */
export interface WriterOptions {
  readonly driver: SqliteDriver;
  /** The connection only the writer writes on. */
  readonly database: SqliteDatabase;
  readonly slot: Slot;
  /** Milliseconds a call waits for its turn. */
  readonly timeout: number;
  /** Aborts when the store is closed. */
  readonly closing: AbortSignal;
  /** Called directly after each commit. */
  readonly committed: (moved: Moved) => void;
  /** Throws when the file is no longer the one that was opened. */
  readonly assertAlive: (operation: string) => void;
}

/** A call that commits by itself and waits to be. */
interface Call {
  readonly operation: string;
  readonly run: (work: Work) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  /** By the monotonic clock. */
  readonly deadline: number;
}

/**
 * Writes to the file. Calls that wait at the same time share one transaction, so that they cost one
 * fsync together; a caller who awaits each call gets a commit per call at once. Every promise settles
 * after its commit.
 *
 * When one call of a group fails, the whole group is rolled back and its calls run again one by one:
 * whatever SQLite did to the transaction, a call is applied once or not at all.
 */
export class Writer {
  readonly statements: Statements;
  readonly #options: WriterOptions;
  readonly #calls: Call[] = [];
  readonly #expiry: Alarm = new Alarm(() => this.#rejectExpired());
  #isPumping = false;
  /** How many of the calls are urgent: the first ones. */
  #urgent = 0;
  #entry: Entry | undefined;
  /** Transactions that wait for their turn. */
  readonly #waiting: Set<Entry> = new Set();
  #isClosed = false;

  /** Opens nothing: the connection is given. */
  constructor(options: WriterOptions) {
    this.#options = options;
    this.statements = new Statements(options.database);
  }

  /**
   * Runs `run` in a transaction and resolves after the commit. It may be run more than once, so it
   * must do nothing but SQL. Urgent calls go first: heartbeats and acks keep what others wait for.
   */
  write<T>(operation: string, run: (work: Work) => T, isUrgent = false): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#isClosed) return reject(closedError(operation));
      const call: Call = {
        operation,
        run,
        // What `run` gives is what this call resolves with.
        resolve: resolve as (value: unknown) => void,
        reject,
        deadline: performance.now() + this.#options.timeout,
      };
      if (isUrgent) {
        this.#calls.splice(this.#urgent++, 0, call);
      } else {
        this.#calls.push(call);
      }
      if (this.#isPumping) return;
      this.#isPumping = true;
      // Calls made in the same turn are to be in the same group.
      queueMicrotask(() => void this.#pump());
    });
  }

  /** Begins a transaction at once when nobody writes; else nothing, see {@linkcode begin}. */
  beginNow(operation: string, label: () => string): Entry | undefined {
    const { slot, driver, assertAlive } = this.#options;
    assertAlive(operation);
    const entry = slot.enterNow(label);
    if (entry === undefined) return undefined;
    try {
      this.statements.get("BEGIN IMMEDIATE").run();
      return entry;
    } catch (error) {
      slot.leave(entry);
      if (isBusy(driver, error)) return undefined;
      throw asDatabaseError(driver, operation, error);
    }
  }

  /**
   * Waits for a turn and begins a transaction; the caller leaves the slot with the entry it gets.
   * Rejects with a retryable `DatabaseError` after the time-out, with the signal's reason before.
   */
  async begin(
    operation: string,
    label: () => string,
    signal: AbortSignal | undefined,
  ): Promise<Entry> {
    const { slot, timeout } = this.#options;
    if (this.#isClosed) throw closedError(operation);
    const deadline = performance.now() + timeout;
    const entry = slot.enter(label, false);
    const abort = () => slot.withdraw(entry, signal?.reason);
    const expiry = new Alarm(() => slot.withdraw(entry, this.#busyError(operation, entry)));
    signal?.addEventListener("abort", abort, { once: true });
    // A timer only for who has to wait.
    if (slot.holder !== entry) expiry.set(timeout);
    this.#waiting.add(entry);
    try {
      await entry.entered;
      await slot.breathe();
    } finally {
      this.#waiting.delete(entry);
      expiry.clear();
      signal?.removeEventListener("abort", abort);
    }
    try {
      await this.#beginPatiently(operation, entry, deadline, signal);
    } catch (error) {
      slot.leave(entry);
      throw error;
    }
    return entry;
  }

  /** Ends a transaction begun by {@linkcode begin}; rejects when it was not or may not be applied. */
  commit(operation: string, moved: Moved): void {
    const { database, driver, committed } = this.#options;
    try {
      this.statements.get("COMMIT").run();
    } catch (error) {
      this.rollback();
      throw asCommitError(driver, operation, error);
    }
    if (database.inTransaction) {
      this.rollback();
      throw new DatabaseError(`${operation}: the transaction was still open after its commit`);
    }
    committed(moved);
  }

  /** Rolls back what is open, if anything is. */
  rollback(): void {
    try {
      if (this.#options.database.inTransaction) this.statements.get("ROLLBACK").run();
    } catch {
      // Rolled back by SQLite itself, or the connection is broken: nothing can be committed on it.
    }
  }

  /** Runs `run` on the connection when nobody writes, outside a transaction. */
  async between(label: string, run: (database: SqliteDatabase) => void): Promise<void> {
    const { slot, database } = this.#options;
    const entry = slot.enter(() => label, false);
    await entry.entered;
    try {
      if (!this.#isClosed) run(database);
    } finally {
      slot.leave(entry);
    }
  }

  /** Refuses what waits and what comes. */
  close(): void {
    this.#isClosed = true;
    this.#expiry.clear();
    for (const call of this.#calls.splice(0)) call.reject(closedError(call.operation));
    const { slot } = this.#options;
    if (this.#entry !== undefined) slot.withdraw(this.#entry, undefined);
    for (const entry of this.#waiting) {
      slot.withdraw(entry, closedError("Cannot begin a transaction"));
    }
  }

  async #pump(): Promise<void> {
    const { slot } = this.#options;
    while (this.#calls.length > 0) {
      const entry = slot.enter(() => "writes that commit by themselves", this.#urgent > 0);
      this.#entry = entry;
      if (slot.holder !== entry) this.#armExpiry();
      try {
        await entry.entered;
        await slot.breathe();
        await this.#commitGroup(entry);
      } catch (error) {
        this.#rejectAll(error);
      } finally {
        this.#entry = undefined;
        slot.leave(entry);
      }
    }
    this.#expiry.clear();
    this.#isPumping = false;
  }

  async #commitGroup(entry: Entry): Promise<void> {
    const last = this.#calls.at(-1);
    if (last === undefined) return;
    await this.#beginPatiently(last.operation, entry, last.deadline, undefined);
    const group = this.#calls.splice(0, GROUP);
    this.#urgent = Math.max(this.#urgent - group.length, 0);
    // All of them may have run out of time while the lock was waited for.
    if (group.length === 0) return this.rollback();
    if (this.#runGroup(group)) return;
    for (const call of group) {
      try {
        await this.#beginPatiently(call.operation, entry, call.deadline, undefined);
        this.#runGroup([call]);
      } catch (error) {
        call.reject(asDatabaseError(this.#options.driver, call.operation, error));
      }
    }
  }

  /**
   * Runs the calls in the transaction that is open, commits and settles them. False when the group
   * was rolled back because of one of several: none of them is settled then.
   */
  #runGroup(group: readonly Call[]): boolean {
    const { driver, database } = this.#options;
    const moved = new Moved();
    const values: unknown[] = [];
    for (const { operation, run } of group) {
      try {
        values.push(run({ statements: this.statements, now: Date.now(), moved }));
        // After an automatic rollback the next statement would commit by itself.
        if (!database.inTransaction) {
          throw new DatabaseError(`${operation}: the transaction is gone`);
        }
      } catch (error) {
        this.rollback();
        if (group.length === 1) group[0]!.reject(asDatabaseError(driver, operation, error));
        return group.length === 1;
      }
    }
    try {
      this.commit(group.length === 1 ? group[0]!.operation : "Cannot write", moved);
    } catch (error) {
      for (const call of group) call.reject(asDatabaseError(driver, call.operation, error));
      return true;
    }
    for (const [index, call] of group.entries()) call.resolve(values[index]);
    return true;
  }

  /** Begins; while another process writes, tries again without blocking the thread. */
  async #beginPatiently(
    operation: string,
    entry: Entry,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { driver, assertAlive } = this.#options;
    assertAlive(operation);
    signal?.throwIfAborted();
    for (let attempt = 0;; attempt++) {
      if (this.#isClosed) throw closedError(operation);
      try {
        // Prepared: in Deno an error of exec() carries no result code.
        this.statements.get("BEGIN IMMEDIATE").run();
        return;
      } catch (error) {
        if (!isBusy(driver, error)) throw asDatabaseError(driver, operation, error);
        this.#armExpiry();
        if (performance.now() >= deadline) throw this.#busyError(operation, entry, error);
        // Short at first, since most writers are; random, since others wait too.
        const delay = Math.min(0.5 * 1.5 ** attempt, 20) * (0.5 + Math.random());
        await pause(delay, operation, this.#options.closing, signal);
      }
    }
  }

  #armExpiry(): void {
    const deadline = this.#calls[0]?.deadline;
    if (deadline !== undefined) this.#expiry.setEarlier(deadline - performance.now());
  }

  #rejectExpired(): void {
    const now = performance.now();
    const waiting: Call[] = [];
    for (const call of this.#calls.splice(0)) {
      if (call.deadline <= now) call.reject(this.#busyError(call.operation, this.#entry));
      else waiting.push(call);
    }
    this.#calls.push(...waiting);
    this.#urgent = Math.min(this.#urgent, waiting.length);
    if (waiting.length > 0) this.#armExpiry();
    else if (this.#entry !== undefined) this.#options.slot.withdraw(this.#entry, undefined);
  }

  #rejectAll(error: unknown): void {
    const { driver } = this.#options;
    this.#urgent = 0;
    for (const call of this.#calls.splice(0)) {
      call.reject(asDatabaseError(driver, call.operation, error));
    }
  }

  #busyError(operation: string, entry: Entry | undefined, cause?: unknown): DatabaseError {
    const { slot, timeout } = this.#options;
    const { holder, heldFor } = slot;
    const fact = holder === undefined || holder === entry
      ? "another process or connection holds the write lock"
      : `a transaction opened at ${holder.label()} is still open after ${Math.round(heldFor)} ms`;
    return new DatabaseError(
      `${operation}: waited ${timeout} ms for the right to write, ${fact}`,
      { cause, retryable: true },
    );
  }
}

function closedError(operation: string): ClosedError {
  return new ClosedError(`${operation}: the store is closed`);
}
