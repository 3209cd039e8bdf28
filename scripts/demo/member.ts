/**
 * The processes of the demo, from the side of the one that starts them.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { moduleFlags } from "../jsr.ts";
import { type Message, type MessageOf, readLines } from "./messages.ts";
import { type Place, writePlace } from "./shop.ts";

/** Milliseconds a process has to end by itself. */
const GRACE = 3_000;

/** A process of the demo that runs, or ran. */
export class Member {
  /** The name it goes by. */
  readonly name: string;
  /** How it ended. */
  readonly status: Promise<Deno.CommandStatus>;
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #firsts: Map<string, PromiseWithResolvers<Message>> = new Map();

  /** Starts `script` of this folder; `listen` is called with each message. */
  constructor(
    name: string,
    script: string,
    place: Place,
    argument: string,
    listen: (message: Message, from: Member) => void,
  ) {
    this.name = name;
    this.#process = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        ...moduleFlags(),
        fileURLToPath(new URL(script, import.meta.url)),
        ...writePlace(place),
        argument,
      ],
      cwd: new URL("../../", import.meta.url),
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#input = this.#process.stdin.getWriter();
    const told = this.#listen(listen);
    this.status = this.#process.status.then(async (status) => {
      await told;
      // A process that is gone may leave its end of the pipe in an error.
      await this.#input.close().catch(() => {});
      for (const { reject } of this.#firsts.values()) {
        reject(new Error(`${name} ended with code ${status.code}`));
      }
      return status;
    });
  }

  /** Resolves with the first message of a type; rejects when the process ends without one. */
  async first<Type extends Message["type"]>(type: Type): Promise<MessageOf<Type>> {
    const isOfType = (message: Message): message is MessageOf<Type> => message.type === type;
    const message = await this.#first(type).promise;
    if (!isOfType(message)) throw new TypeError(`Cannot wait for "${type}": got "${message.type}"`);
    return message;
  }

  /** Sends a command. */
  async send(command: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(command + "\n"));
  }

  /** Kills it, as the kernel does when memory is short: nothing in it gets to know. */
  kill(): void {
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It is gone.
    }
  }

  /** Lets it end by itself, and kills it when it does not. */
  async end(): Promise<Deno.CommandStatus> {
    void this.#input.close().catch(() => {});
    const timer = setTimeout(() => this.kill(), GRACE);
    const status = await this.status;
    clearTimeout(timer);
    return status;
  }

  async #listen(listen: (message: Message, from: Member) => void): Promise<void> {
    for await (const line of readLines(this.#process.stdout)) {
      const message: Message = JSON.parse(line);
      this.#first(message.type).resolve(message);
      listen(message, this);
    }
  }

  #first(type: Message["type"]): PromiseWithResolvers<Message> {
    const known = this.#firsts.get(type);
    if (known !== undefined) return known;
    const first = Promise.withResolvers<Message>();
    // Whoever waits for it hears of its rejection.
    first.promise.catch(() => {});
    this.#firsts.set(type, first);
    return first;
  }
}
