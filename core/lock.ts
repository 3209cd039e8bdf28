import type { Context } from "./context.ts";
import type { LockGrant } from "./engine.ts";
import { checkLabel, checkName } from "./names.ts";
import { checkPositiveDuration } from "./options.ts";

/**
 * A lock with a time to live: at most one holder inside it. When it expires, exclusivity is lost
 * silently; a holder that renews in time keeps it (ADR-008 §7).
 *
 * Disposing a lock releases it.
 *
 * @example
 * ```ts
 * import { openSqlite } from "@alkstore/alkstore/sqlite";
 *
 * await using store = await openSqlite(":memory:");
 * const lock = await store.tryLock("nightly-report", "host-1", 30_000);
 * if (lock !== undefined) {
 *   // … work for less than 30 s, or renew …
 *   await lock.renew(30_000);
 *   await lock.release();
 * }
 * ```
 */
export interface Lock extends AsyncDisposable {
  /** The lock's name. */
  readonly name: string;
  /** Who took it, for people: ownership goes by the token. */
  readonly owner: string;
  /**
   * The fencing token: strictly increases with each acquisition of the name. Pass it to what the lock
   * protects, which refuses a lower one than it has seen.
   */
  readonly token: number;
  /** When exclusivity ends unless renewed, by the database's clock. */
  readonly expiresAt: Date;
  /**
   * Extends the lock to `ttl` milliseconds from now. False when it has expired or is another's: the
   * exclusivity is lost.
   */
  renew(ttl: number): Promise<boolean>;
  /** Frees the lock. False when another holds it, or it was released before. */
  release(): Promise<boolean>;
}

/** Takes a free or lapsed lock; nothing when it is held, also by the same owner. */
export async function tryLock(
  context: Context,
  name: string,
  owner: string,
  ttl: number,
): Promise<Lock | undefined> {
  const operation = "Cannot lock";
  checkName("lock", name, operation);
  checkLabel("owner", owner, operation);
  const lifetime = checkPositiveDuration(ttl, "ttl", operation);
  const session = context.writer(operation, "lock before it and use tx.assertLockTx inside");
  const grant = await session.tryLock(name, owner, lifetime);
  return grant === undefined ? undefined : new LockHandle(context, name, owner, grant);
}

/** The {@linkcode Lock} of the caller. */
export class LockHandle implements Lock {
  readonly name: string;
  readonly owner: string;
  readonly token: number;
  readonly context: Context;
  #expiresAt: number;

  /** Made by `tryLock`. */
  constructor(context: Context, name: string, owner: string, grant: LockGrant) {
    this.context = context;
    this.name = name;
    this.owner = owner;
    this.token = grant.token;
    this.#expiresAt = grant.expiresAt;
  }

  get expiresAt(): Date {
    return new Date(this.#expiresAt);
  }

  async renew(ttl: number): Promise<boolean> {
    const operation = this.#operation("renew");
    const lifetime = checkPositiveDuration(ttl, "ttl", operation);
    const session = this.context.writer(operation, "renew outside it");
    const grant = await session.renewLock(this.name, this.token, lifetime);
    if (grant === undefined) return false;
    this.#expiresAt = grant.expiresAt;
    return true;
  }

  async release(): Promise<boolean> {
    const session = this.context.writer(this.#operation("release"), "release after it");
    return await session.releaseLock(this.name, this.token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      // Disposing never throws; the lock lapses by itself.
      this.context.events.error(error);
    }
  }

  #operation(verb: string): string {
    return `Cannot ${verb} lock ${JSON.stringify(this.name)}`;
  }
}
