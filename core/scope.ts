import { AsyncLocalStorage } from "node:async_hooks";

/** One run of a `transaction` callback or of a transactional handler. */
interface TxScope {
  /** The store the transaction belongs to. */
  readonly owner: object;
  /** False once the callback has ended: what it left running is on its own. */
  isActive: boolean;
  /** The scope around it, of another store. */
  readonly outer: TxScope | undefined;
}

const scopes = new AsyncLocalStorage<TxScope>();

/**
 * Runs `work` such that a write of the same store outside its transaction is refused: on one engine
 * it would wait for ever for the transaction it stands in, on the other it would commit alone.
 */
export async function runInScope<T>(owner: object, work: () => Promise<T>): Promise<T> {
  const scope: TxScope = { owner, isActive: true, outer: scopes.getStore() };
  try {
    return await scopes.run(scope, work);
  } finally {
    scope.isActive = false;
  }
}

/** Refuses a write of `owner` inside the callback of one of its own transactions. */
export function refuseInScope(owner: object, operation: string, instead: string): void {
  let scope = scopes.getStore();
  for (; scope !== undefined; scope = scope.outer) {
    if (scope.isActive && scope.owner === owner) {
      throw new TypeError(
        `${operation}: a transaction of this store is open around the call, ${instead}`,
      );
    }
  }
}

/** Runs `callback` outside every scope: loops started inside one outlive it. */
export function outsideScopes<T>(callback: () => T): T {
  return scopes.exit(callback);
}
