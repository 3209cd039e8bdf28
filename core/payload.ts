import type { Json } from "./json.ts";

/**
 * A payload type whose values come back from JSON as they went in, or `never` in the places where they
 * would not: a `Date`, a function, `undefined`, a class with methods. Interfaces are welcome, which
 * `Json` itself cannot take for lack of an index signature.
 *
 * @example
 * ```ts
 * import type { Payload } from "@alkstore/alkstore";
 *
 * interface Order {
 *   id: string;
 *   note?: string;
 * }
 * const order: Payload<Order> = { id: "o-1" };
 * console.log(order);
 * ```
 */
export type Payload<T> = T extends Json ? T
  : T extends (...args: never) => unknown ? never
  : T extends Date | bigint | symbol | undefined ? never
  : T extends object ? { [Key in keyof T]: Payload<T[Key]> }
  : never;
