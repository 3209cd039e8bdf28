import type { Topic, TopicKind, WakeListener } from "../../core/engine.ts";

/** One call of `watch`: the same listener may be on a topic twice. */
interface Subscription {
  readonly listener: WakeListener;
}

/** Who listens for what. Listeners may add and remove listeners, and throw, while they are called. */
export class Listeners {
  readonly #topics: Map<Topic, Set<Subscription>> = new Map();
  readonly #onError: (error: Error) => void;

  /** `onError` receives what a listener throws. */
  constructor(onError: (error: Error) => void) {
    this.#onError = onError;
  }

  /** Whether nobody listens. */
  get isEmpty(): boolean {
    return this.#topics.size === 0;
  }

  /** Whether somebody listens for a topic of this kind. */
  listenFor(kind: TopicKind): boolean {
    return this.#topicsOf(kind).length > 0;
  }

  /** Adds a listener; the returned function removes it. */
  add(topic: Topic, listener: WakeListener): () => void {
    const subscription = { listener };
    const subscriptions = this.#topics.get(topic) ?? new Set();
    this.#topics.set(topic, subscriptions.add(subscription));
    return () => {
      subscriptions.delete(subscription);
      // A set that was emptied before may have a successor.
      if (subscriptions.size === 0 && this.#topics.get(topic) === subscriptions) {
        this.#topics.delete(topic);
      }
    };
  }

  /** Wakes who listens for the topics. */
  wake(topics: Iterable<Topic>): void {
    for (const topic of topics) {
      const subscriptions = this.#topics.get(topic);
      if (subscriptions !== undefined) {
        this.#call(subscriptions, (listener) => listener.wake(false));
      }
    }
  }

  /** Wakes who listens for any topic of this kind. */
  wakeKind(kind: TopicKind): void {
    this.wake(this.#topicsOf(kind));
  }

  /** Wakes everybody: nobody knows what has moved. */
  wakeAll(): void {
    this.wake([...this.#topics.keys()]);
  }

  /** Tells everybody that the source died, and forgets them. */
  end(cause: Error): void {
    const all = [...this.#topics.values()];
    this.#topics.clear();
    for (const subscriptions of all) {
      this.#call(subscriptions, (listener) => listener.end(cause));
      subscriptions.clear();
    }
  }

  /** Forgets everybody, in the middle of a wake too. */
  clear(): void {
    for (const subscriptions of this.#topics.values()) subscriptions.clear();
    this.#topics.clear();
  }

  #topicsOf(kind: TopicKind): Topic[] {
    return [...this.#topics.keys()].filter((topic) => topic.startsWith(`${kind}:`));
  }

  #call(subscriptions: Set<Subscription>, tell: (listener: WakeListener) => void): void {
    for (const subscription of [...subscriptions]) {
      // One that was called before it may have removed it.
      if (!subscriptions.has(subscription)) continue;
      try {
        tell(subscription.listener);
      } catch (error) {
        this.#onError(error instanceof Error ? error : new Error(String(error), { cause: error }));
      }
    }
  }
}
