/**
 * The line that says how far the demo is.
 *
 * @module
 */

/** Milliseconds between two lines: on a terminal the line is rewritten, elsewhere they add up. */
const PERIOD = Deno.stdout.isTerminal() ? 100 : 1_000;

/** Shows a line again and again. */
export class Progress {
  readonly #line: () => string;
  readonly #timer: ReturnType<typeof setInterval>;

  /** Starts; `line` gives the text of the moment. */
  constructor(line: () => string) {
    this.#line = line;
    this.#timer = setInterval(() => this.#show(), PERIOD);
  }

  /** Shows the last line and no more. */
  stop(): void {
    clearInterval(this.#timer);
    this.#show();
    if (Deno.stdout.isTerminal()) console.log();
  }

  #show(): void {
    if (!Deno.stdout.isTerminal()) return console.log(this.#line());
    const line = this.#line().slice(0, Deno.consoleSize().columns - 1);
    Deno.stdout.writeSync(new TextEncoder().encode(`\r${line}\x1b[K`));
  }
}
