/**
 * The beginnings of the messages about one handle: `Cannot enqueue to queue "mail"`. Each is made once,
 * since every call needs its own and hardly any fails.
 */
export class Wording {
  readonly #object: string;
  readonly #made: Map<string, string> = new Map();

  /** `kind` is `queue`, `outbox` or `stream`. */
  constructor(kind: string, name: string) {
    this.#object = `${kind} ${JSON.stringify(name)}`;
  }

  /** `Cannot <verb> queue "mail"`. */
  cannot(verb: string): string {
    let text = this.#made.get(verb);
    if (text === undefined) {
      text = `Cannot ${verb} ${this.#object}`;
      this.#made.set(verb, text);
    }
    return text;
  }
}
