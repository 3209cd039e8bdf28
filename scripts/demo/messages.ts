/**
 * What the processes of the demo tell the one that started them: JSON lines on their standard output.
 *
 * Commands go the other way, one word a line, on standard input; its end is the command to stop, so
 * that nobody outlives the demo.
 *
 * @module
 */

/** A message of the producer or of a worker. */
export type Message =
  /** A worker is armed. */
  | { readonly type: "ready" }
  /** An order was committed. */
  | {
    readonly type: "placed";
    readonly order: string;
    /** When its commit had returned, see {@linkcode now}. */
    readonly at: number;
  }
  /** The transaction of an order was rolled back; it is tried again unless it is refused. */
  | { readonly type: "rolled-back"; readonly order: string; readonly isRefused: boolean }
  /** From now on orders come without a pause. */
  | { readonly type: "rush" }
  /** The worker that was told to holds claims and finishes none. */
  | {
    readonly type: "holding";
    /** The jobs claimed, invoices all. */
    readonly jobs: readonly number[];
    /** Whether it is also inside a transaction of the projection. */
    readonly isProjecting: boolean;
  }
  /** A wake of the channel {@linkcode PING} came to a worker at this time, see {@linkcode now}. */
  | { readonly type: "woken"; readonly at: number }
  /** A worker has stopped. */
  | {
    readonly type: "stopped";
    /** How often the other worker had already projected the same events. */
    readonly lostRaces: number;
  }
  /** The store reported something through `onEvent` that is worth a line. */
  | { readonly type: "trouble"; readonly text: string };

/** The message of a type. */
export type MessageOf<Type extends Message["type"]> = Extract<Message, { readonly type: Type }>;

/** The command to hold on to claims, see {@linkcode Message}. */
export const HOLD = "hold";

/** The channel on which workers are woken for nothing, to see how long that takes. */
export const PING = "ping";

/** Sends a message to the process that started this one. */
export function say(message: Message): void {
  const bytes = new TextEncoder().encode(JSON.stringify(message) + "\n");
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

/** Yields the lines of a stream of text. */
export async function* readLines(from: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of from) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** Milliseconds since 1970, with a fraction: comparable between the processes of one machine. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Resolves after `ms` milliseconds. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
