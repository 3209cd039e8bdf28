/** What the statements of the SQLite engine cost, by their plans: no clock, and no statistics. */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { META, MIGRATIONS } from "../engines/sqlite/schema.ts";
import * as events from "../engines/sqlite/sql/events.ts";
import * as jobs from "../engines/sqlite/sql/jobs.ts";
import * as locks from "../engines/sqlite/sql/locks.ts";
import * as wakes from "../engines/sqlite/sql/wakes.ts";

/** Runs `use` on an empty database with our tables. */
function withTables(use: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(":memory:");
  try {
    for (const sql of [META, ...MIGRATIONS]) database.exec(sql);
    use(database);
  } finally {
    database.close();
  }
}

/** The steps of a plan, one a line. */
function planOf(database: DatabaseSync, sql: string): string {
  return database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map((row) => String(row["detail"]))
    .join("\n");
}

Deno.test("no statement reads a whole table of ours", () => {
  withTables((database) => {
    const scans: string[] = [];
    for (const [name, sql] of Object.entries({ ...jobs, ...events, ...locks, ...wakes })) {
      if (/SCAN __alkstore_(?!wakes USING)/.test(planOf(database, sql))) scans.push(name);
    }
    assertEquals(scans, []);
  });
});

Deno.test("a claim takes jobs in the order of the ready index and sorts nothing", () => {
  withTables((database) => {
    const plan = planOf(database, jobs.CLAIM);
    assertStringIncludes(plan, "USING INDEX __alkstore_jobs_ready (queue=?)");
    assertEquals(plan.includes("TEMP B-TREE"), false);
  });
});

Deno.test("a claim's probe takes one step into each partial index", () => {
  withTables((database) => {
    const plan = planOf(database, jobs.CLAIM_DUTIES);
    for (
      const index of [
        "ready (queue=?)",
        "scheduled (queue=? AND run_at<?)",
        "claimed (queue=? AND lease_until<?)",
        "expires (queue=? AND expires_at<?)",
      ]
    ) {
      assertStringIncludes(plan, `USING COVERING INDEX __alkstore_jobs_${index}`);
    }
  });
});

Deno.test("a dead job is in no index a claim looks into", () => {
  withTables((database) => {
    const { names } = database.prepare(
      `SELECT group_concat(name) AS names FROM sqlite_schema
       WHERE type = 'index' AND tbl_name = '__alkstore_jobs' AND sql NOT LIKE '%state = ''dead''%'`,
    ).get() as { names: string };
    assertEquals(names.split(",").length, 4);
    for (const name of names.split(",")) {
      const { sql } = database.prepare("SELECT sql FROM sqlite_schema WHERE name = ?").get(
        name,
      ) as {
        sql: string;
      };
      assertEquals(/state (= '(ready|scheduled|claimed)'|<> 'dead')/.test(sql), true, sql);
    }
  });
});
