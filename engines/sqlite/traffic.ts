/** Milliseconds over which is counted. */
const SPAN = 50;

/** File events per millisecond from which traffic is heavy. */
const HEAVY_EVENTS = 1.5;

/** The share of looks that find something, down to which traffic stays heavy. */
const HEAVY_FINDINGS = 0.8;

/**
 * Tells when commits, of this process or of others, come so fast that their file events cost more
 * than a steady look: † at 20,000 commits a second, hearing them takes 0.9 of a core in Deno and 0.5
 * in Node.
 */
export class Traffic {
  #isHeavy = false;
  #events = 0;
  #looks = 0;
  #findings = 0;
  #since = 0;

  /** Notes a file event. */
  event(): void {
    this.#events++;
  }

  /** Notes a look, and tells whether traffic is heavy. */
  look(hasFound: boolean): boolean {
    this.#looks++;
    if (hasFound) this.#findings++;
    const span = performance.now() - this.#since;
    if (span >= SPAN) this.#count(span);
    return this.#isHeavy;
  }

  #count(span: number): void {
    // Who does not listen hears no events, and goes by what the looks find.
    this.#isHeavy = this.#isHeavy
      ? this.#findings / this.#looks > HEAVY_FINDINGS
      : this.#events / span > HEAVY_EVENTS;
    this.#events = this.#looks = this.#findings = 0;
    this.#since += span;
  }
}
