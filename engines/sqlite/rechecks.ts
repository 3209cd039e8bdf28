import { clearImmediate, setImmediate } from "node:timers";
import { Alarm } from "../../core/timers.ts";
import { Traffic } from "./traffic.ts";

/** What a look has found. `"busy"`: it could not look, and must again. */
export type Finding = "same" | "changed" | "busy";

/**
 * Milliseconds from each look after a file event to the next; 0 is the next turn of the event loop.
 * The event of a commit comes before the commit is visible: in between lies an fsync, of 0.2 ms or,
 * on a busy disk, of a second. What takes longer is left to the safety poll.
 */
const PAUSES: readonly number[] = [0, 1, 4, 16, 64, 256, 1_024];

/**
 * The pauses after a look that found something. It may have found the commit before the one whose
 * event it was, so the series does not end there; that is rare, so it goes on with fewer looks.
 * † On a busy disk 2 of 100 runs of 500 commits lost their last wake when it ended 68 ms later.
 */
const PAUSES_AFTER_FINDING: readonly number[] = [4, 64, 1_024];

/** The longest pause while the database is busy. */
const BUSY_PAUSE = 64;

/** Milliseconds of rest after a look that found something: bounds what a busy writer can cost. */
const REST = 1;

/** Milliseconds between looks while traffic is heavy. */
const STEADY_PAUSE = 4;

/**
 * Looks at once after a file event, and again at growing intervals, one series at a time. While
 * traffic is heavy it looks steadily and does without the events.
 */
export class Rechecks {
  readonly #look: () => Finding;
  readonly #onPace: (isSteady: boolean) => void;
  readonly #alarm: Alarm = new Alarm(() => this.#step());
  #immediate: ReturnType<typeof setImmediate> | undefined;
  /** What is left of the series. */
  #pauses: readonly number[] = [];
  #isStopped = true;
  #isLooking = false;
  #restsUntil = 0;
  #traffic: Traffic = new Traffic();
  #isSteady = false;

  /** `onPace` is told when events are needed no more, or again. Both may call every method of this. */
  constructor(look: () => Finding, onPace: (isSteady: boolean) => void) {
    this.#look = look;
    this.#onPace = onPace;
  }

  /** Starts the series, or starts it again. */
  kick(): void {
    this.#isStopped = false;
    this.#pauses = PAUSES;
    this.#traffic.event();
    // A look that comes in this turn, or goes on, serves all events of the turn.
    if (this.#immediate !== undefined || this.#isLooking) return;
    const rest = this.#restsUntil - performance.now();
    if (rest > 0) this.#alarm.set(rest);
    else this.#step();
  }

  /** Ends the series. */
  stop(): void {
    this.#isStopped = true;
    this.#isSteady = false;
    this.#traffic = new Traffic();
    this.#alarm.clear();
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
  }

  #step(): void {
    this.#isLooking = true;
    const finding = this.#look();
    this.#isLooking = false;
    if (finding === "changed") {
      this.#restsUntil = performance.now() + REST;
      this.#pauses = PAUSES_AFTER_FINDING;
    }
    if (!this.#isStopped) this.#choosePace(finding === "changed");
    if (!this.#isStopped) this.#goOn(finding === "busy");
  }

  #choosePace(hasFound: boolean): void {
    const isSteady = this.#traffic.look(hasFound);
    if (isSteady === this.#isSteady) return;
    this.#isSteady = isSteady;
    // Nobody listened since: look again at once.
    this.#pauses = PAUSES;
    this.#onPace(isSteady);
  }

  #goOn(isBusy: boolean): void {
    if (this.#isSteady) return this.#pause(STEADY_PAUSE);
    const [pause, ...rest] = this.#pauses;
    this.#pauses = rest;
    if (isBusy) this.#pause(Math.min(pause ?? BUSY_PAUSE, BUSY_PAUSE));
    else if (pause !== undefined) this.#pause(pause);
  }

  #pause(duration: number): void {
    this.#alarm.clear();
    if (duration > 0) this.#alarm.set(duration);
    else {
      this.#immediate = setImmediate(() => {
        this.#immediate = undefined;
        this.#step();
      });
    }
  }
}
