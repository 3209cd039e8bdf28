/**
 * Opens the shop. All that depends on the engine is here.
 *
 * @module
 */

import { openSqlite, type SqliteConnection } from "../../engines/sqlite.ts";
import type { Order } from "./order.ts";
import {
  createShop,
  type EngineName,
  type OrderPlaced,
  type Place,
  type Revenue,
  type Shop,
  type Tables,
} from "./shop.ts";

/** How each engine opens the shop. */
const engines: Readonly<Record<EngineName, (place: Place) => Promise<Shop>>> = {
  sqlite: async ({ folder, isDurable }) => {
    const store = await openSqlite(`${folder}/shop.db`, {
      // The library built into Deno: nothing is downloaded, and all processes use the same one.
      driver: "node",
      durability: isDurable ? "full" : "normal",
    });
    return createShop(store, (connection) => new SqliteTables(connection));
  },
};

/** Opens the shop at a place; close its store. */
export async function openShop(place: Place): Promise<Shop> {
  return await engines[place.engine](place);
}

/** The shop's tables on SQLite, whose calls are synchronous. */
class SqliteTables implements Tables {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  create(): Promise<void> {
    this.#connection.exec(`
      CREATE TABLE orders (id TEXT PRIMARY KEY, placed_at TEXT NOT NULL, customer TEXT NOT NULL,
        country TEXT NOT NULL, total_cents INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
      CREATE TABLE revenue (country TEXT, day TEXT, orders INTEGER NOT NULL, cents INTEGER NOT NULL,
        PRIMARY KEY (country, day)) STRICT, WITHOUT ROWID;`);
    return Promise.resolve();
  }

  insertOrder(order: Order): Promise<void> {
    const { id, placedAt, customer, shipping, totalCents } = order;
    this.#connection.prepare("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)")
      .run(id, placedAt, customer.name, shipping.country, totalCents, JSON.stringify(order));
    return Promise.resolve();
  }

  addRevenue({ country, day, totalCents }: OrderPlaced): Promise<void> {
    this.#connection.prepare(`
      INSERT INTO revenue VALUES (?, ?, 1, ?)
      ON CONFLICT DO UPDATE SET orders = orders + 1, cents = cents + excluded.cents`)
      .run(country, day, totalCents);
    return Promise.resolve();
  }

  listOrders(): Promise<string[]> {
    const rows = this.#connection.prepare("SELECT id FROM orders ORDER BY id").all();
    return Promise.resolve((rows as { readonly id: string }[]).map(({ id }) => id));
  }

  listRevenue(): Promise<Revenue[]> {
    const rows = this.#connection.prepare("SELECT * FROM revenue ORDER BY country, day").all();
    return Promise.resolve(rows as Revenue[]);
  }
}
