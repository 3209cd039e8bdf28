/** The lock operations, in whatever transaction is open. */

import type { LockGrant } from "../../core/engine.ts";
import * as sql from "./sql/locks.ts";
import type { Work } from "./work.ts";

/** Takes a free or lapsed lock. */
export function tryLock(
  { statements, now }: Work,
  name: string,
  owner: string,
  ttl: number,
): LockGrant | undefined {
  const expiresAt = now + ttl;
  const row = statements.get<{ token: number }>(sql.TRY_LOCK).get(name, owner, expiresAt, now);
  return row === undefined ? undefined : { token: row.token, expiresAt };
}

/** Extends a live lock of this token. */
export function renewLock(
  { statements, now }: Work,
  name: string,
  token: number,
  ttl: number,
): LockGrant | undefined {
  const expiresAt = now + ttl;
  const { changes } = statements.get(sql.RENEW_LOCK).run(name, token, now, expiresAt);
  return changes === 1 ? { token, expiresAt } : undefined;
}

/** Frees the lock of this token. */
export function releaseLock({ statements }: Work, name: string, token: number): boolean {
  return statements.get(sql.RELEASE_LOCK).run(name, token).changes === 1;
}

/** Whether the lock is held by this token. The write lock of the transaction keeps it so. */
export function assertLock({ statements, now }: Work, name: string, token: number): boolean {
  return statements.get(sql.LOCK_IS_HELD).get(name, token, now) !== undefined;
}
