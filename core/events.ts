import type { DeadReason } from "./engine.ts";

/**
 * What a store reports to {@linkcode Store.onEvent}: diagnostics, nothing in it is needed to write
 * correct code.
 *
 * @example
 * ```ts
 * import type { StoreEvent } from "@alkstore/alkstore";
 *
 * function log(event: StoreEvent): void {
 *   if (event.type === "dead") console.error(`job ${event.id} of ${event.queue}: ${event.reason}`);
 * }
 * log({ type: "dead", queue: "mail", id: 1, reason: "exhausted" });
 * ```
 */
export type StoreEvent =
  /** Jobs were claimed through this store. */
  | {
    readonly type: "claimed";
    readonly queue: string;
    readonly ids: readonly number[];
    readonly worker: string;
  }
  /** Jobs were finished. */
  | { readonly type: "acked"; readonly queue: string; readonly ids: readonly number[] }
  /** A job failed and will run again. */
  | {
    readonly type: "retried";
    readonly queue: string;
    readonly id: number;
    /** Milliseconds until it is ready. */
    readonly delay: number;
    readonly error: string | undefined;
  }
  /** A call of this store sent a job to the dead. */
  | {
    readonly type: "dead";
    readonly queue: string;
    readonly id: number;
    /** Why, where the store knows; the job's snapshot always does. */
    readonly reason: DeadReason | undefined;
  }
  /**
   * A claim of this store was lost: it lapsed and the job may run elsewhere, or the job was cancelled.
   * What its holder does no longer counts.
   */
  | { readonly type: "lease-lost"; readonly queue: string; readonly id: number }
  /** Something works, but worse than it should. */
  | { readonly type: "degraded"; readonly reason: string; readonly cause?: unknown }
  /** What was degraded works as it should again. */
  | { readonly type: "recovered"; readonly reason: string }
  /** Something failed in the background; it will be tried again. */
  | { readonly type: "error"; readonly error: Error };

/** Hands events to whoever listens; nothing is built when nobody does. */
export class EventHub {
  readonly #listeners: Set<(event: StoreEvent) => void> = new Set();

  /** Whether somebody listens: ask before building an event on a hot path. */
  get isHeard(): boolean {
    return this.#listeners.size > 0;
  }

  /** Calls `listener` for each event until the returned function is called. */
  on(listener: (event: StoreEvent) => void): () => void {
    // Wrapped, so that the same function may be registered twice.
    const entry = (event: StoreEvent) => listener(event);
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  /** Hands out an event. A listener that throws stops neither the store nor the other listeners. */
  emit(event: StoreEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch {
        // Diagnostics of the application must not break its messages.
      }
    }
  }

  /** Reports a background failure. */
  error(error: unknown): void {
    this.emit({
      type: "error",
      error: error instanceof Error ? error : new Error(String(error)),
    });
  }
}
