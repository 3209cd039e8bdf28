/**
 * How fast the disk is.
 *
 * @module
 */

/** How often it is asked. */
const TRIES = 9;

/** Measures the milliseconds until a write to a file in `folder` is on the disk: the median. */
export async function measureSync(folder: string): Promise<number> {
  const path = `${folder}/sync`;
  const times: number[] = [];
  {
    using file = await Deno.open(path, { write: true, create: true });
    for (let tries = 0; tries < TRIES; tries++) {
      const startedAt = performance.now();
      await file.write(new Uint8Array(4_096));
      await file.syncData();
      times.push(performance.now() - startedAt);
    }
  }
  await Deno.remove(path);
  return times.sort((a, b) => a - b)[TRIES >> 1] ?? 0;
}
