/**
 * Writes `orders.jsonl`: `deno run -W scripts/demo/generate_orders.ts`.
 *
 * The same orders every time: neither the clock nor `Math.random` is asked.
 *
 * @module
 */

import { catalogue, countries, type Country } from "./generate_words.ts";
import { type Order, type OrderItem, ORDERS, ordersFile } from "./order.ts";

const SEED = 20_260_302;

/** When the shop opened, in milliseconds since 1970: 2026-03-02T06:00:00Z. */
const OPENED_AT = 1_772_431_200_000;

/** Generates the first `count` orders the shop ever got. */
export function generateOrders(count: number): Order[] {
  const random = new Random(SEED);
  let placedAt = OPENED_AT;
  return Array.from({ length: count }, (_, index) => {
    placedAt += random.between(20, 1_200) * 1_000;
    return generateOrder(random, 100_001 + index, new Date(placedAt));
  });
}

/** Gives orders as JSON lines. */
export function formatOrders(orders: readonly Order[]): string {
  return orders.map((order) => JSON.stringify(order) + "\n").join("");
}

function generateOrder(random: Random, number: number, placedAt: Date): Order {
  // More customers live in the countries at the front.
  const country = countries[Math.min(random.below(countries.length), random.below(16))]!;
  const items = generateItems(random);
  return {
    id: `o-${number}`,
    placedAt: placedAt.toISOString(),
    customer: generateCustomer(random, country, number),
    items,
    totalCents: items.reduce((sum, item) => sum + item.quantity * item.priceCents, 0),
    currency: "EUR",
    shipping: generateAddress(random, country),
  };
}

function generateCustomer(random: Random, country: Country, number: number): Order["customer"] {
  const given = random.pick(country.given);
  const family = random.pick(country.family);
  const mailbox = asciiOf(`${given}.${family}`) ?? `customer${number}`;
  return {
    name: country.isFamilyFirst ? `${family} ${given}` : `${given} ${family}`,
    email: `${mailbox}@example.${random.pick(["com", "net", "org"])}`,
  };
}

function generateItems(random: Random): OrderItem[] {
  const items = new Map<string, OrderItem>();
  for (let left = random.pick([1, 1, 1, 2, 2, 3]); left > 0; left--) {
    const [sku, title, priceCents] = random.pick(catalogue);
    items.set(sku, { sku, title, quantity: random.pick([1, 1, 1, 1, 2, 3]), priceCents });
  }
  return [...items.values()];
}

function generateAddress(random: Random, country: Country): Order["shipping"] {
  const [postalCode, city] = random.pick(country.cities);
  const street = random.pick(country.streets).replace("#", String(random.between(1, 180)));
  return { street, postalCode, city, country: country.code };
}

/** The Latin letters that are no base letter with a mark. */
const letters: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  ð: "d",
  ø: "o",
  þ: "th",
  ı: "i",
  ł: "l",
};

/** Spells a name with ASCII letters, or gives nothing where it has others than Latin ones. */
function asciiOf(name: string): string | undefined {
  const plain = name.toLowerCase().normalize("NFD")
    .replace(/[\u0300-\u036f' ]/g, "")
    .replace(/[^\0-\x7f]/g, (letter) => letters[letter] ?? letter);
  return /^[a-z.-]+$/.test(plain) ? plain : undefined;
}

/** A generator of its own (mulberry32): whole numbers only, so equal on every machine. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A whole number from 0 to `limit - 1`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }
}

if (import.meta.main) await Deno.writeTextFile(ordersFile, formatOrders(generateOrders(ORDERS)));
