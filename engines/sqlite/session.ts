import type {
  ClaimRef,
  EventPage,
  JobRow,
  JobStamp,
  JoinedSession,
  Landing,
  LockGrant,
  NewEvent,
  OffsetSaving,
  QueueCounts,
  QueuePending,
  Reading,
  RootSession,
  Session,
  StreamFacts,
} from "../../core/engine.ts";
import * as events from "./events.ts";
import * as jobs from "./jobs.ts";
import * as locks from "./locks.ts";
import type { Reader } from "./reader.ts";
import { arePrunable, pruneWakes, wake } from "./wakes.ts";
import type { Work } from "./work.ts";
import type { Writer } from "./writer.ts";

/** The operations that exist in and out of a transaction; `write` is what differs. */
abstract class WriteOperations implements Session {
  /** Runs `run` in the session's transaction, or in one of its own. */
  protected abstract write<T>(
    operation: string,
    run: (work: Work) => T,
    isUrgent?: boolean,
  ): Promise<T>;

  notify(channel: string): Promise<void> {
    // The payload was checked; a wake does not carry it.
    return this.write("Cannot notify", (work) => wake(work, `channel:${channel}`));
  }

  publish(stream: string, batch: readonly NewEvent[]): Promise<number[]> {
    return this.write("Cannot publish", (work) => events.publish(work, stream, batch));
  }

  saveOffset(
    stream: string,
    consumer: string,
    offset: number,
    from: number | undefined,
  ): Promise<OffsetSaving> {
    return this.write(
      "Cannot save offset",
      (work) => events.saveOffset(work, stream, consumer, offset, from),
    );
  }

  enqueue(queue: string, stamp: JobStamp, payloads: readonly string[]): Promise<number[]> {
    return this.write("Cannot enqueue", (work) => jobs.enqueue(work, queue, stamp, payloads));
  }

  ack(_queue: string, claims: readonly ClaimRef[]): Promise<number[]> {
    return this.write("Cannot ack", (work) => jobs.ack(work, claims), true);
  }

  retry(
    queue: string,
    claim: ClaimRef,
    delay: number,
    error: string | undefined,
  ): Promise<Landing> {
    return this.write(
      "Cannot retry",
      (work) => jobs.retry(work, queue, claim, delay, error),
      true,
    );
  }

  fail(_queue: string, claim: ClaimRef, error: string | undefined): Promise<Landing> {
    return this.write("Cannot fail", (work) => jobs.fail(work, claim, error), true);
  }

  cancel(queue: string, id: number): Promise<boolean> {
    return this.write("Cannot cancel", (work) => jobs.cancel(work, queue, id));
  }
}

/** The operations of a transaction, begun by us or joined. */
export abstract class TransactionOperations<Connection> extends WriteOperations
  implements JoinedSession<Connection> {
  abstract readonly connection: Connection;

  assertLock(name: string, token: number): Promise<boolean> {
    return this.write("Cannot assert lock", (work) => locks.assertLock(work, name, token));
  }
}

/** Calls that commit by themselves, in group commits, and reads on a connection of their own. */
export class SqliteSession extends WriteOperations implements RootSession {
  readonly #writer: Writer;
  readonly #reader: Reader;
  readonly #truncateWal: () => Promise<void>;

  /** Made by the engine. */
  constructor(writer: Writer, reader: Reader, truncateWal: () => Promise<void>) {
    super();
    this.#writer = writer;
    this.#reader = reader;
    this.#truncateWal = truncateWal;
  }

  readEvents(stream: string, after: number, limit: number): Promise<EventPage> {
    return this.#reader.read(
      "Cannot read events",
      ({ statements }) => events.readEvents(statements, stream, after, limit),
    );
  }

  savedOffset(stream: string, consumer: string): Promise<number> {
    return this.#reader.read(
      "Cannot get offset",
      ({ statements }) => events.savedOffset(statements, stream, consumer),
    );
  }

  resetOffset(stream: string, consumer: string, offset: number): Promise<OffsetSaving> {
    return this.write(
      "Cannot reset offset",
      (work) => events.resetOffset(work, stream, consumer, offset),
    );
  }

  dropConsumer(stream: string, consumer: string): Promise<boolean> {
    return this.write(
      "Cannot drop consumer",
      (work) => events.dropConsumer(work, stream, consumer),
    );
  }

  trim(stream: string, offset: number, limit: number): Promise<number> {
    return this.write("Cannot trim", (work) => events.trim(work, stream, offset, limit));
  }

  streamFacts(stream: string): Promise<StreamFacts> {
    return this.#reader.read(
      "Cannot read stream",
      ({ statements }) => events.streamFacts(statements, stream),
    );
  }

  async claim(queue: string, worker: string, limit: number): Promise<JobRow[]> {
    // An idle wake must write nothing, or processes would wake each other for ever.
    const hasDuties = await this.#reader.read("Cannot claim", ({ statements, now }) => {
      const duties = jobs.claimDuties(statements, queue, now);
      return duties.ready || duties.due || duties.lapsed || duties.expired;
    });
    if (!hasDuties) return [];
    return await this.write("Cannot claim", (work) => jobs.claim(work, queue, worker, limit));
  }

  heartbeat(
    _queue: string,
    claims: readonly (ClaimRef & { readonly extend: number })[],
  ): Promise<number[]> {
    return this.write("Cannot extend claim", (work) => jobs.heartbeat(work, claims), true);
  }

  release(queue: string, claims: readonly ClaimRef[]): Promise<Landing[]> {
    return this.write("Cannot release", (work) => jobs.release(work, queue, claims), true);
  }

  job(queue: string, id: number): Promise<Reading<JobRow>> {
    return this.#reader.read("Cannot get job", ({ statements, now }) => ({
      now,
      rows: jobs.job(statements, queue, id),
    }));
  }

  deadJobs(queue: string, after: number, limit: number): Promise<Reading<JobRow>> {
    return this.#reader.read("Cannot read dead jobs", ({ statements, now }) => ({
      now,
      rows: jobs.deadJobs(statements, queue, after, limit, now),
    }));
  }

  counts(queue: string): Promise<QueueCounts> {
    return this.#reader.read(
      "Cannot count jobs",
      ({ statements, now }) => jobs.counts(statements, queue, now),
    );
  }

  pending(queues: readonly string[]): Promise<QueuePending[]> {
    return this.#reader.read(
      "Cannot look for jobs",
      ({ statements, now }) => queues.map((queue) => jobs.pending(statements, queue, now)),
    );
  }

  requeue(queue: string, id: number): Promise<boolean> {
    return this.write("Cannot requeue", (work) => jobs.requeue(work, queue, id));
  }

  purgeDead(queue: string, age: number, limit: number): Promise<number> {
    return this.write(
      "Cannot purge",
      (work) => jobs.purgeDead(work, queue, age, limit),
    );
  }

  async sweep(queue: string | undefined, limit: number): Promise<number> {
    const queues = queue === undefined
      ? await this.#reader.read(
        "Cannot sweep",
        ({ statements, now }) => jobs.queuesToSweep(statements, now),
      )
      : [queue];
    let moved = 0;
    for (const name of queues) {
      if (moved >= limit) break;
      const left = limit - moved;
      moved += await this.write("Cannot sweep", (work) => jobs.sweep(work, name, left));
    }
    return moved;
  }

  async maintain(): Promise<void> {
    const hasOldWakes = await this.#reader.read("Cannot prune wakes", arePrunable);
    if (hasOldWakes) await this.write("Cannot prune wakes", pruneWakes);
    await this.#truncateWal();
  }

  tryLock(name: string, owner: string, ttl: number): Promise<LockGrant | undefined> {
    return this.write("Cannot lock", (work) => locks.tryLock(work, name, owner, ttl));
  }

  renewLock(name: string, token: number, ttl: number): Promise<LockGrant | undefined> {
    return this.write(
      "Cannot renew lock",
      (work) => locks.renewLock(work, name, token, ttl),
      true,
    );
  }

  releaseLock(name: string, token: number): Promise<boolean> {
    return this.write("Cannot release lock", (work) => locks.releaseLock(work, name, token), true);
  }

  protected override write<T>(
    operation: string,
    run: (work: Work) => T,
    isUrgent = false,
  ): Promise<T> {
    return this.#writer.write(operation, run, isUrgent);
  }
}
