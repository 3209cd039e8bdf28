import type { Context } from "./context.ts";
import { PayloadTooLargeError } from "./errors.ts";
import { encodeJson, type Json } from "./json.ts";

/**
 * Checks the payload of a notify and encodes it; nothing stands for none. It is measured before any
 * SQL, in bytes of UTF-8, where the engine has a limit (ADR-008 §5).
 */
export function encodeNotifyPayload(
  context: Context,
  payload: Json | undefined,
  operation: string,
): string | undefined {
  if (payload === undefined) return undefined;
  const text = encodeJson(payload, operation);
  const limit = context.engine.notifyLimit;
  if (limit !== undefined) {
    const size = new TextEncoder().encode(text).length;
    if (size > limit) throw new PayloadTooLargeError(operation, limit, size);
  }
  return text;
}
