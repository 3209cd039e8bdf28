/** Runs `call` at once, in the caller's turn, and gives its value or error as a promise. */
export function settle<T>(call: () => T): Promise<T> {
  return new Promise((resolve) => resolve(call()));
}
