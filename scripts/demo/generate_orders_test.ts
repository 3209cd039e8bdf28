import { assert, assertEquals } from "@std/assert";
import { formatOrders, generateOrders } from "./generate_orders.ts";
import { dayOf, ORDERS, ordersFile, readOrders } from "./order.ts";

Deno.test("generateOrders() makes orders.jsonl, byte for byte", async () => {
  const text = await Deno.readTextFile(ordersFile);
  // Not assertEquals: it would print half a megabyte.
  assert(formatOrders(generateOrders(ORDERS)) === text, "orders.jsonl is out of date");
});

Deno.test("generateOrders() begins with the same orders however many it makes", () => {
  assertEquals(generateOrders(20), generateOrders(30).slice(0, 20));
});

Deno.test("orders.jsonl holds orders whose totals are the sums of their items", async () => {
  const orders = await readOrders(ORDERS);
  assertEquals(orders.length, ORDERS);
  assertEquals(new Set(orders.map((order) => order.id)).size, ORDERS);
  for (const { id, items, totalCents } of orders) {
    const sum = items.reduce((cents, item) => cents + item.quantity * item.priceCents, 0);
    assertEquals(totalCents, sum, id);
    assert(items.length > 0, id);
  }
});

Deno.test("orders.jsonl has names beyond ASCII, addresses within it, and days in order", async () => {
  const orders = await readOrders(ORDERS);
  const isAscii = (text: string) => /^[\x20-\x7e]+$/.test(text);
  assert(orders.filter((order) => !isAscii(order.customer.name)).length > ORDERS / 4);
  assert(
    orders.every((order) => /^[a-z0-9.-]+@example\.(com|net|org)$/.test(order.customer.email)),
  );
  const times = orders.map((order) => order.placedAt);
  assertEquals(times, times.toSorted());
  assert(new Set(orders.map(dayOf)).size > 5);
});
