/**
 * The world outside the database: what was sent is in files, as a mail server has it, and no rollback
 * takes it back.
 *
 * @module
 */

/** A mail or an invoice that left the shop. */
export interface Sent {
  readonly kind: "mail" | "invoice";
  readonly order: string;
  readonly to: string;
  /** The job it was sent for: the same for every attempt. */
  readonly job: number;
  readonly attempt: number;
  readonly worker: string;
  /** When the handler was called, see `now()`. */
  readonly startedAt: number;
  /** Since when no other handler of its kind ran in the worker; nothing when one did. */
  readonly idleSince?: number;
}

/** Appends what one worker sends to a file of its own. */
export class Sender {
  readonly #file: Deno.FsFile;

  /** Opens the file of `worker`. */
  constructor(folder: string, worker: string) {
    this.#file = Deno.openSync(`${folderOf(folder)}/${worker}.jsonl`, {
      append: true,
      create: true,
    });
  }

  /** Sends; there is no way back, not even by SIGKILL. */
  send(sent: Sent): void {
    const bytes = new TextEncoder().encode(JSON.stringify(sent) + "\n");
    for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
  }
}

/** Makes the place where senders write. */
export async function prepareSending(folder: string): Promise<void> {
  await Deno.mkdir(folderOf(folder));
}

/** Reads what all workers sent, in the order of the calls of their handlers. */
export async function readSent(folder: string): Promise<Sent[]> {
  const all: Sent[] = [];
  for await (const { name } of Deno.readDir(folderOf(folder))) {
    const lines = (await Deno.readTextFile(`${folderOf(folder)}/${name}`)).split("\n");
    // Behind the last line end is nothing, or what a kill cut off.
    for (const line of lines.slice(0, -1)) all.push(JSON.parse(line));
  }
  return all.sort((a, b) => a.startedAt - b.startedAt);
}

/** Apart from the database: a folder that is watched for commits is best left alone. */
function folderOf(folder: string): string {
  return `${folder}/sent`;
}
