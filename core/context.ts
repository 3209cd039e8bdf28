import type { Claims } from "./claims.ts";
import type { Engine, RootSession } from "./engine.ts";
import { ClosedError } from "./errors.ts";
import type { EventHub } from "./events.ts";
import { OpenTransactions } from "./open_transactions.ts";
import type { Poller } from "./poller.ts";
import { refuseInScope } from "./scope.ts";
import type { Transaction } from "./transaction.ts";
import type { TxOptions } from "./tx.ts";

/** A loop of the store: a worker, a projection. */
export interface Loop {
  /** Takes nothing new; resolves when what was begun has ended. */
  drain(): Promise<void>;
  /** Ends the loop, giving what runs at most `patience` milliseconds. */
  halt(patience: number): Promise<void>;
}

/** Checks the options, waits for a turn and begins. */
export type Begin = (
  context: Context,
  options: TxOptions | undefined,
  operation: string,
) => Promise<Transaction<unknown>>;

/** What the handles of one store share. */
export class Context {
  readonly engine: Engine<unknown>;
  readonly events: EventHub;
  readonly poller: Poller;
  readonly claims: Claims;
  /** Everything that runs until it is stopped. */
  readonly loops: Set<Loop> = new Set();
  /** Receivers to end with the store. */
  readonly receivers: Set<{ close(): Promise<void> }> = new Set();
  /** Begins a transaction of the store. */
  readonly begin: Begin;
  /** Transactions that are open. */
  readonly transactions: OpenTransactions;
  /** How long a transaction may be open unless it says otherwise, in milliseconds. */
  readonly txTimeout: number;
  /** Set by `drain()`: no new claims. */
  isDraining = false;
  /** Set by `close()`: no new calls. */
  isClosed = false;

  /** Made by the store, which owns the parts. */
  constructor(
    engine: Engine<unknown>,
    events: EventHub,
    poller: Poller,
    claims: Claims,
    begin: Begin,
    txTimeout: number,
  ) {
    this.engine = engine;
    this.events = events;
    this.poller = poller;
    this.claims = claims;
    this.begin = begin;
    this.txTimeout = txTimeout;
    this.transactions = new OpenTransactions(events);
  }

  /** The session, for a read. */
  reader(operation: string): RootSession {
    this.assertOpen(operation);
    return this.engine.session;
  }

  /** The session, for a write that commits by itself; `instead` is the way out of a transaction. */
  writer(operation: string, instead: string): RootSession {
    this.assertOpen(operation);
    refuseInScope(this, operation, instead);
    return this.engine.session;
  }

  /** Refuses calls on a closed store. */
  assertOpen(operation: string): void {
    if (this.isClosed) throw new ClosedError(`${operation}: the store is closed`);
  }
}
