/** A process that uses the file with plain SQL: the application's own tools, a backup, a shell. */

import { DatabaseSync } from "node:sqlite";
import { type Details, obey } from "./orders.ts";

let database: DatabaseSync;

await obey({
  open: ({ path }: Details) => {
    database = new DatabaseSync(path);
    database.exec("PRAGMA busy_timeout = 0");
  },
  run: ({ sql, parameters = [] }: Details) => database.prepare(sql).all(...parameters),
  /** Begins to write if that is possible now, and undoes it. */
  tryToWrite: () => {
    try {
      database.prepare("BEGIN IMMEDIATE").run();
      database.prepare("ROLLBACK").run();
      return "free";
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  },
  close: () => database.close(),
});
