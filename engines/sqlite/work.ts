import type { Moved } from "./moved.ts";
import type { Statements } from "./statements.ts";

/**
 * What an operation works with: the statements of the connection whose transaction is open, the one
 * "now" of the operation, and the list of what it moves. Operations are synchronous functions over
 * it, so they are the same in a group commit, in a caller's transaction and in a joined one.
 */
export interface Work {
  readonly statements: Statements;
  /** Unix milliseconds. */
  readonly now: number;
  readonly moved: Moved;
}
