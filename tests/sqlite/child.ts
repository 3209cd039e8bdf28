/** Processes that share a database file with a test: they run a script of `children/`. */

import { moduleFlags } from "../../scripts/jsr.ts";
import { soon } from "../contract/wait.ts";

/**
 * A process that does what it is told: each line of JSON we write is an order, each one it writes an
 * answer or a report.
 */
export class Child implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #orders: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #lines: AsyncGenerator<string>;
  readonly #script: string;

  private constructor(script: string) {
    this.#script = script;
    this.#process = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "-A",
        "--no-check",
        "--no-lock",
        ...moduleFlags(),
        new URL(`children/${script}.ts`, import.meta.url).href,
      ],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#orders = this.#process.stdin.getWriter();
    this.#lines = linesOf(this.#process.stdout);
  }

  /** Starts `children/<script>.ts` and resolves when it is ready for orders. */
  static async start(script: "outsider" | "storekeeper"): Promise<Child> {
    const child = new Child(script);
    await child.hear();
    return child;
  }

  /** Starts several at once. */
  static startMany(script: "outsider" | "storekeeper", count: number): Promise<Child[]> {
    return Promise.all(Array.from({ length: count }, () => Child.start(script)));
  }

  /** Gives an order and resolves with the answer. An error there is an error here. */
  async ask<Answer = unknown>(order: string, details: object = {}): Promise<Answer> {
    await this.tell(order, details);
    return await this.hear<Answer>();
  }

  /** Gives an order. */
  async tell(order: string, details: object = {}): Promise<void> {
    await this.#orders.write(
      new TextEncoder().encode(`${JSON.stringify({ order, ...details })}\n`),
    );
  }

  /** Resolves with what it says next. */
  async hear<Answer = unknown>(): Promise<Answer> {
    const { value, done } = await soon(this.#lines.next(), `a word of the ${this.#script}`);
    if (done === true) throw new Error(`the ${this.#script} has ended`);
    const said: { answer?: Answer; error?: string } = JSON.parse(value);
    if (said.error !== undefined) throw new Error(`the ${this.#script} failed: ${said.error}`);
    return said.answer as Answer;
  }

  /** Everything it has said that was not heard yet, once it has ended. */
  async heardLast<Answer = unknown>(): Promise<Answer[]> {
    const words: Answer[] = [];
    for await (const line of this.#lines) words.push(JSON.parse(line).answer);
    return words;
  }

  /** Ends it with SIGKILL: it cannot tidy up. Resolves when nothing of it runs any more. */
  async kill(): Promise<void> {
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It has died by itself.
    }
    await this.#process.status;
    await this.#orders.close().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.heardLast();
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
