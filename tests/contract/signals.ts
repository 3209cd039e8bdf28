/** Counts the listeners that are left on a signal; call it before the signal is used. */
export function countListeners(signal: AbortSignal): () => number {
  const left: unknown[] = [];
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  Object.defineProperties(signal, {
    addEventListener: {
      value: (...args: Parameters<typeof add>) => {
        left.push(args[1]);
        add(...args);
      },
    },
    removeEventListener: {
      value: (...args: Parameters<typeof remove>) => {
        const place = left.indexOf(args[1]);
        if (place >= 0) left.splice(place, 1);
        remove(...args);
      },
    },
  });
  return () => left.length;
}
