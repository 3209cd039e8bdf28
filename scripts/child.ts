/**
 * Runs child processes so that none of them, nor what they start, outlives us.
 *
 * @module
 */

/** How {@linkcode run} starts a command. */
export interface RunOptions {
  /** Folder to run in. @default {the current one} */
  readonly cwd?: string | URL;
  /** Variables added to our own. @default {none} */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether to keep a copy of what the child prints, besides showing it. @default {false} */
  readonly keepOutput?: boolean;
}

/** What a command left behind. */
export interface RunResult {
  /** Exit code, above 128 after a signal. */
  readonly code: number;
  /** What it printed on both outputs, empty without {@linkcode RunOptions.keepOutput}. */
  readonly output: string;
}

const onWindows = Deno.build.os === "windows";

/** The signals that end us, with the exit code each of them leaves. */
const endings: ReadonlyArray<readonly [Deno.Signal, number]> = onWindows
  ? [["SIGINT", 130]]
  : [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]];

/** Milliseconds that a child may take to end after a signal. */
const grace = 5_000;

const children = new Set<Deno.ChildProcess>();

/** Runs a command to its end and shows what it prints as it comes. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  listenOnce();
  const output = options.keepOutput === true ? "piped" : "inherit";
  const child = new Deno.Command(command, {
    args: [...args],
    stdin: "inherit",
    stdout: output,
    stderr: output,
    // Its own process group, so that a signal also reaches what the child started.
    detached: !onWindows,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
  }).spawn();
  children.add(child);
  const texts = output === "piped"
    ? [show(child.stdout, Deno.stdout), show(child.stderr, Deno.stderr)]
    : [];
  const { code } = await child.status;
  // Before the texts: a process left behind would hold the pipes open for ever.
  signalGroup(child, "SIGKILL");
  children.delete(child);
  return { code, output: (await Promise.all(texts)).join("") };
}

/** Copies a child's output to ours and returns it as text. */
async function show(
  from: ReadableStream<Uint8Array>,
  to: { writeSync(bytes: Uint8Array): number },
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of from) {
    for (let at = 0; at < chunk.length;) at += to.writeSync(chunk.subarray(at));
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

let listening = false;

/** Makes the first ending signal end the children, and then us. */
function listenOnce(): void {
  if (listening) return;
  listening = true;
  let ending = false;
  for (const [signal, code] of endings) {
    Deno.addSignalListener(signal, () => {
      if (ending) return;
      ending = true;
      void end(signal, code);
    });
  }
}

/** Passes the signal on, waits for the children, and exits as one killed by it. */
async function end(signal: Deno.Signal, code: number): Promise<void> {
  const last = [...children];
  for (const child of last) signalGroup(child, signal);
  setTimeout(() => {
    for (const child of last) signalGroup(child, "SIGKILL");
  }, grace);
  await Promise.all(last.map((child) => child.status));
  for (const child of last) signalGroup(child, "SIGKILL");
  Deno.exit(code);
}

function signalGroup(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    if (onWindows) child.kill(signal);
    else Deno.kill(-child.pid, signal);
  } catch {
    // Nothing of it is left.
  }
}
