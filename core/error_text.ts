/** How much of an error is kept with a job, in bytes of UTF-8. */
const MAX_BYTES = 8 * 1_024;

/**
 * An error as it is stored with a job: its name and message, without U+0000 and lone surrogates
 * (not every database takes them), at most 8 KiB.
 */
export function errorText(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  const text = describeError(error).replaceAll("\0", "\uFFFD").toWellFormed();
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MAX_BYTES) return text;
  // A cut inside a character decodes to U+FFFD: drop it.
  return new TextDecoder().decode(bytes.subarray(0, MAX_BYTES - 3)).replace(/\uFFFD+$/, "") + "…";
}

function describeError(error: unknown): string {
  try {
    if (error instanceof Error) {
      return error.message === "" ? error.name : `${error.name}: ${error.message}`;
    }
    if (typeof error === "string") return error;
    return JSON.stringify(error) ?? String(error);
  } catch {
    // A getter or toJSON of somebody's thrown object failed: the job must still be failed.
    return "an error that cannot be described";
  }
}
