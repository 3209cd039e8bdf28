/** What a name or a handle stands for in a `*Tx` call. */

import type { Context } from "./context.ts";
import type { JobStamp } from "./engine.ts";
import { checkName, describe } from "./names.ts";
import { OutboxHandle, outboxKey } from "./outbox_handle.ts";
import { QueueHandle } from "./queue_handle.ts";
import type { StandardSchema } from "./schema.ts";
import { DEFAULT_STAMP, OUTBOX_STAMP } from "./stamp.ts";
import { StreamHandle } from "./stream_handle.ts";

/** Where a job goes, and how it is stamped. */
export interface JobTarget {
  readonly key: string;
  readonly stamp: JobStamp;
  readonly schema: StandardSchema | undefined;
  readonly operation: string;
}

/** Where an event goes. */
export interface StreamTarget {
  readonly name: string;
  readonly schema: StandardSchema | undefined;
  readonly operation: string;
}

/** A queue by name, with the default stamp, or by handle. */
export function queueTarget(context: Context, queue: unknown, verb: string): JobTarget {
  if (queue instanceof QueueHandle) {
    const operation = queue.operation(verb);
    assertSameStore(context, queue.context, operation);
    return { key: queue.key, stamp: queue.stamp, schema: queue.schema, operation };
  }
  const key = checkTargetName("queue", queue, verb);
  return { key, stamp: DEFAULT_STAMP, schema: undefined, operation: wording("queue", key, verb) };
}

/** An outbox by name or by handle; only here does its backing queue get a job. */
export function outboxTarget(context: Context, outbox: unknown, verb: string): JobTarget {
  if (outbox instanceof OutboxHandle) {
    const operation = outbox.operation(verb);
    assertSameStore(context, outbox.context, operation);
    return { key: outboxKey(outbox.name), stamp: OUTBOX_STAMP, schema: outbox.schema, operation };
  }
  const name = checkTargetName("outbox", outbox, verb);
  const operation = wording("outbox", name, verb);
  return { key: outboxKey(name), stamp: OUTBOX_STAMP, schema: undefined, operation };
}

/** A stream by name or by handle. */
export function streamTarget(context: Context, stream: unknown, verb: string): StreamTarget {
  if (stream instanceof StreamHandle) {
    const operation = stream.operation(verb);
    assertSameStore(context, stream.context, operation);
    return { name: stream.name, schema: stream.schema, operation };
  }
  const name = checkTargetName("stream", stream, verb);
  return { name, schema: undefined, operation: wording("stream", name, verb) };
}

/** A channel is always a name. */
export function checkChannel(channel: unknown, operation: string): string {
  return checkName("channel", channel, operation);
}

function checkTargetName(
  kind: "queue" | "outbox" | "stream",
  target: unknown,
  verb: string,
): string {
  const operation = `Cannot ${verb} ${kind}`;
  if (typeof target !== "string") {
    throw new TypeError(
      `${operation}: a name or the handle of a ${kind} is needed, got ${describe(target)}`,
    );
  }
  return checkName(kind, target, operation);
}

function wording(kind: string, name: string, verb: string): string {
  return `Cannot ${verb} ${kind} ${JSON.stringify(name)}`;
}

function assertSameStore(context: Context, other: Context, operation: string): void {
  if (other !== context) throw new TypeError(`${operation}: the handle belongs to another store`);
}
