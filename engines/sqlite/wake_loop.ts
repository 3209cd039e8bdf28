import type { EngineEvent } from "../../core/engine.ts";
import { DatabaseError } from "../../core/errors.ts";
import { Alarm, Backoffs } from "../../core/timers.ts";
import { Changes, type Reading } from "./changes.ts";
import type { SqliteDatabase } from "./driver.ts";
import { FileEvents } from "./file_events.ts";
import { FileIdentity } from "./identity.ts";
import type { Listeners } from "./listeners.ts";
import type { Moved } from "./moved.ts";
import { type Finding, Rechecks } from "./rechecks.ts";

/** Milliseconds between two looks of the safety poll, less or more a quarter. */
export interface PollRange {
  /** The first pause where there are no file events. */
  readonly min: number;
  /** What it doubles up to while nothing moves, and the pause behind file events. */
  readonly max: number;
}

/** What a {@linkcode WakeLoop} needs, and whom it tells. */
export interface WakeLoopOptions {
  /** Real path of the database file, which exists. */
  readonly path: string;
  /** Opens a connection for the loop alone. A `busy_timeout` blocks the whole process: best 0. */
  readonly open: () => SqliteDatabase;
  /** The driver's `resultCode`. */
  readonly resultCode: (error: unknown) => number | undefined;
  /** Whether to listen for file events; otherwise wakes come from the safety poll alone. */
  readonly watchFiles: boolean;
  /** The safety poll; `false` for none at all. */
  readonly poll: PollRange | false;
  /** Receives what happens in the background. Must not throw. */
  readonly onEvent: (event: EngineEvent) => void;
}

/** What becomes of the loop's connection. */
export interface WakeLoopFate {
  /** The baseline was read: nothing committed after this is missed. */
  armed(): void;
  /** The first connection could not be opened; the loop has stopped. */
  refused(error: DatabaseError): void;
  /** The file was replaced, deleted or cannot be read; the loop has stopped for good. */
  died(error: DatabaseError): void;
}

/** Milliseconds at least between two looks at which file it is, that file events cause. */
const IDENTITY_PAUSE = 1_000;

/** SQLITE_BUSY, SQLITE_LOCKED and SQLITE_PROTOCOL: a lock that could not be had, this time. */
const BUSY_CODES: readonly (number | undefined)[] = [5, 6, 15];

/**
 * Wakes the listeners when another connection, of any process, has committed.
 *
 * A file event makes it look, and the safety poll behind it. A look is one `PRAGMA data_version` and,
 * when that has changed, the counters and the rows above the last ones.
 */
export class WakeLoop {
  readonly #options: WakeLoopOptions;
  readonly #listeners: Listeners;
  readonly #fate: WakeLoopFate;
  readonly #identity: FileIdentity;
  readonly #fileEvents: FileEvents | undefined;
  readonly #rechecks: Rechecks = new Rechecks(
    () => this.#look(),
    (isSteady) => isSteady ? this.#fileEvents?.stop() : this.#fileEvents?.start(),
  );
  readonly #pollAlarm: Alarm = new Alarm(() => this.#poll());
  #pollPauses: Backoffs = new Backoffs(Infinity, Infinity);
  /** The connection; nothing before the loop runs and while it is being opened again. */
  #changes: Changes | undefined;
  #identifiesAt = 0;
  #isRunning = false;
  /** The connection broke, and nothing was read since. */
  #isBroken = false;

  /** Starts nothing. The file that is at the path now is the one. */
  constructor(options: WakeLoopOptions, listeners: Listeners, fate: WakeLoopFate) {
    this.#options = options;
    this.#listeners = listeners;
    this.#fate = fate;
    this.#identity = new FileIdentity(options.path);
    if (options.watchFiles) this.#fileEvents = this.#newFileEvents(options);
  }

  /** Why wakes come from polling; nothing when they come from file events. */
  get pollReason(): string | undefined {
    return this.#fileEvents === undefined
      ? "file events are turned off"
      : this.#fileEvents.lostBecause;
  }

  /** Whether nothing that is committed from now on will be missed. */
  get isArmed(): boolean {
    return this.#changes !== undefined;
  }

  /** Starts it, unless it runs; the fate tells when it is armed. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#startPoll();
    // The first look opens the connection.
    this.#rechecks.kick();
  }

  /** Stops it and closes all it has open; file events a turn later, see `stopped`. */
  stop(): void {
    this.#isRunning = false;
    this.#isBroken = false;
    this.#rechecks.stop();
    this.#pollAlarm.clear();
    this.#fileEvents?.stop();
    this.#disconnect();
  }

  /** Resolves when nothing is left open after `stop`. */
  async stopped(): Promise<void> {
    await this.#fileEvents?.stopped();
  }

  /** Does not tell of this commit of this process, whose listeners were woken. */
  skip(moved: Moved): void {
    this.#changes?.skip(moved);
  }

  /** Somebody new listens: where it polls, it begins again with the shortest pause. */
  hasten(): void {
    if (this.pollReason === undefined) return;
    this.#pollPauses.reset();
    this.#pollAlarm.setEarlier(this.#pollPauses.next());
  }

  #newFileEvents({ path, onEvent }: WakeLoopOptions): FileEvents {
    return new FileEvents({
      path,
      onWrite: () => this.#hear(),
      onRename: () => this.#dieIfLost(),
      onLost: (reason, cause) => {
        this.#startPoll();
        onEvent({ type: "degraded", reason, cause });
      },
      onRestored: () => {
        this.#startPoll();
        onEvent({ type: "recovered", reason: "file events are back" });
        this.#rechecks.kick();
        this.#listeners.wakeAll();
      },
    });
  }

  #hear(): void {
    if (!this.#isRunning) return;
    this.#rechecks.kick();
    // A new file at the path comes with no event of its own, but whoever writes to it uses our -wal.
    if (performance.now() < this.#identifiesAt) return;
    this.#identifiesAt = performance.now() + IDENTITY_PAUSE;
    this.#dieIfLost();
  }

  #startPoll(): void {
    const { min, max } = this.#options.poll || { min: Infinity, max: Infinity };
    this.#pollPauses = new Backoffs(this.pollReason === undefined ? max : min, max);
    this.#pollAlarm.set(this.#pollPauses.next());
  }

  #poll(): void {
    this.#dieIfLost();
    const finding = this.#look();
    if (finding === "busy") this.#rechecks.kick();
    if (this.pollReason !== undefined) {
      if (finding === "changed") this.#pollPauses.reset();
      this.#listeners.wakeKind("channel");
    }
    if (this.#isRunning) this.#pollAlarm.set(this.#pollPauses.next());
  }

  #look(): Finding {
    if (!this.#isRunning) return "same";
    try {
      return this.#changes === undefined ? this.#connect() : this.#read(this.#changes);
    } catch (error) {
      // The baseline stays as it is: a new one would swallow what was committed meanwhile.
      if (this.#isBusy(error)) return "busy";
      return this.#mend(error);
    }
  }

  #connect(): Finding {
    this.#changes = Changes.open(this.#options.open);
    // Only now: the path may have led to another file when it was opened.
    this.#dieIfLost();
    if (!this.#isRunning) return "same";
    // Not earlier: opening the connection made the -wal file. What was committed in between, also
    // where Deno before 2.7 begins to watch 5 ms late, is found by the rest of the series.
    this.#fileEvents?.start();
    this.#fate.armed();
    // The versions of two connections cannot be compared, so something may have moved in between.
    if (this.#isBroken) this.#listeners.wakeAll();
    return "same";
  }

  #read(changes: Changes): Finding {
    const reading = changes.read((kind) => this.#listeners.listenFor(kind));
    this.#isBroken = false;
    if (reading === undefined) return "same";
    this.#tell(reading);
    return "changed";
  }

  #tell({ topics, isGap }: Reading): void {
    if (isGap) return this.#listeners.wakeAll();
    // Rows change their run times and lease ends without a trace. So do those of our own commits,
    // which the connection cannot tell from others: that one is woken too often.
    this.#listeners.wake(topics.add("deadlines:"));
  }

  #isBusy(error: unknown): boolean {
    const code = this.#options.resultCode(error);
    return code !== undefined && BUSY_CODES.includes(code & 0xff);
  }

  /** Opens the connection again, by the next look; dies when that was tried already. */
  #mend(error: unknown): Finding {
    const wasArmed = this.isArmed;
    this.#disconnect();
    this.#dieIfLost();
    if (!this.#isRunning) return "same";
    const message = error instanceof Error ? error.message : String(error);
    const failure = new DatabaseError(`Cannot read wakes: ${message}`, { cause: error });
    if (this.#isBroken) return this.#die(failure);
    if (!wasArmed) return this.#refuse(failure);
    this.#isBroken = true;
    this.#options.onEvent({ type: "error", error: failure });
    return "busy";
  }

  #dieIfLost(): void {
    const loss = this.#identity.loss;
    if (loss === undefined || !this.#isRunning) return;
    this.#die(new DatabaseError(`Cannot read wakes: the database file was ${loss}`));
  }

  #die(error: DatabaseError): Finding {
    this.stop();
    this.#fate.died(error);
    return "same";
  }

  #refuse(error: DatabaseError): Finding {
    this.stop();
    this.#fate.refused(error);
    return "same";
  }

  #disconnect(): void {
    const changes = this.#changes;
    this.#changes = undefined;
    try {
      changes?.close();
    } catch {
      // A broken connection may refuse even this, and there is nothing left to do with it.
    }
  }
}
