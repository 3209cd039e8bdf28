import { assert, assertEquals, assertThrows } from "@std/assert";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SqliteDatabase, SqliteDriver, SqliteValue } from "../../engines/sqlite/driver.ts";

const BUSY = 5;
const BUSY_SNAPSHOT = 517;

/**
 * What every driver must do, registered test by test with the runtime's own test function.
 * `connect` opens a connection as an app may have it, with other defaults than the driver's own.
 */
export function driverSuite<Connection extends { close(): unknown }>(
  register: (name: string, body: () => void) => void,
  driver: SqliteDriver<Connection>,
  connect: (path: string) => Connection,
): void {
  const test = (name: string, body: (scene: Scene<Connection>) => void) =>
    register(`${driver.name} driver: ${name}`, () => {
      const scene = new Scene(driver);
      try {
        body(scene);
      } finally {
        scene.dispose();
      }
    });

  const values: { [name: string]: SqliteValue } = {
    "text": "hello",
    "the empty string": "",
    "text outside ASCII": "na\u00efve \u{1F9EA} \u2028 \uFFFD",
    "1 MB of text": "\u{1F9EA}x".repeat(200_000),
    "0": 0,
    "-1": -1,
    "2^31": 2 ** 31,
    "2^40": 2 ** 40,
    "an instant": 1_740_003_367_000,
    "2^53 - 1": Number.MAX_SAFE_INTEGER,
    "1 - 2^53": Number.MIN_SAFE_INTEGER,
    "null": null,
  };
  for (const [name, value] of Object.entries(values)) {
    test(`${name} comes back as it was stored`, ({ db }) => {
      const column = typeof value === "number" ? "number" : "text";
      db.exec("CREATE TABLE t (number INTEGER, text TEXT) STRICT");
      db.prepare(`INSERT INTO t (${column}) VALUES (?)`).run(value);
      const select = db.prepare(`SELECT ${column} AS value FROM t`);
      assertEquals(select.get()?.["value"], value);
      assertEquals(select.all().map((row) => row["value"]), [value]);
      assertEquals(db.prepare("SELECT ? AS value").get(value)?.["value"], value);
      // By type too: a number reaches an INTEGER column as an integer.
      const type = value === null ? "null" : typeof value === "number" ? "integer" : "text";
      assertEquals(db.prepare(`SELECT typeof(${column}) AS type FROM t`).get(), { type });
    });
  }

  test("an integer above 2^53 - 1 throws when it is read, it is never rounded", ({ db }) => {
    for (const integer of ["9007199254740992", "-9007199254740992", "9223372036854775807"]) {
      const statement = db.prepare(`SELECT 1 AS one, ${integer} AS value`);
      assertThrows(() => statement.get(), RangeError);
      assertThrows(() => statement.all(), RangeError);
    }
  });

  test("JSON is text on the way out", ({ db }) => {
    assertEquals(db.prepare("SELECT json_array(1, '2') AS value").get(), { value: '[1,"2"]' });
  });

  test("numbers compare and compute as integers, also as parameters", ({ db }) => {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, at INTEGER) STRICT");
    const insert = db.prepare("INSERT INTO t (at) VALUES (? + ?)");
    for (let i = 0; i < 5; i++) insert.run(1_740_003_367_000, i);
    const ids = (sql: string, ...parameters: SqliteValue[]) =>
      db.prepare<{ id: number }>(sql).all(...parameters).map((row) => row.id);
    assertEquals(ids("SELECT id FROM t WHERE at <= ? ORDER BY id", 1_740_003_367_001), [1, 2]);
    assertEquals(ids("SELECT id FROM t WHERE id = ?", 3), [3]);
    assertEquals(ids("SELECT id FROM t ORDER BY id LIMIT ? OFFSET ?", 2, 1), [2, 3]);
    assertEquals(
      ids("UPDATE t SET at = max(at, ?) WHERE at < ? RETURNING id", 2 ** 40, 1_740_003_367_001),
      [1],
    );
    assertEquals(db.prepare("SELECT CAST(? AS INTEGER) || '' AS text").get(7), { text: "7" });
    assertEquals(
      db.prepare("SELECT sum(value) AS sum FROM json_each(?)").get("[1740003367000, 1]"),
      { sum: 1_740_003_367_001 },
    );
  });

  test("numbered parameters are bound by their numbers, however often they occur", ({ db }) => {
    const both = db.prepare("SELECT ?2 AS second, ?1 AS first, ?2 || ?1 AS text");
    assertEquals(both.get("a", "b"), { second: "b", first: "a", text: "ba" });
    assertEquals(both.all("c", null), [{ second: null, first: "c", text: null }]);
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT) STRICT");
    const insert = db.prepare("INSERT INTO t (v) VALUES (?1 || ?1)");
    assertEquals(insert.run("x").changes, 1);
    assertEquals(db.prepare("SELECT v FROM t").get(), { v: "xx" });
  });

  test("run() tells the changes and the last rowid, also above 2^32", ({ db }) => {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v INTEGER) STRICT");
    const insert = db.prepare("INSERT INTO t (v) VALUES (?)");
    assertEquals(told(insert.run(1)), [1, 1]);
    assertEquals(told(insert.run(2)), [1, 2]);
    db.prepare("INSERT INTO t (id, v) VALUES (?, 3)").run(2 ** 40);
    assertEquals(told(insert.run(4)), [1, 2 ** 40 + 1]);
    assertEquals(db.prepare("UPDATE t SET v = v + ?").run(1).changes, 4);
    assertEquals(db.prepare("DELETE FROM t WHERE v > ?").run(100).changes, 0);
  });

  test("get() is undefined and all() is empty where there is no row", ({ db }) => {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY) STRICT");
    assertEquals(db.prepare("SELECT id FROM t").get(), undefined);
    assertEquals(db.prepare("SELECT id FROM t WHERE id = ?").get(1), undefined);
    assertEquals(db.prepare("SELECT id FROM t").all(), []);
    assertEquals(db.prepare("DELETE FROM t RETURNING id").all(), []);
  });

  test("a statement without rows runs through get() and all() too", ({ db }) => {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY) STRICT");
    assertEquals(db.prepare("INSERT INTO t DEFAULT VALUES").get(), undefined);
    assertEquals(db.prepare("INSERT INTO t (id) VALUES (?)").all(7), []);
    assertEquals(db.prepare("SELECT count(*) AS n FROM t").get(), { n: 2 });
  });

  test("RETURNING gives its rows, and run() runs it to its end", ({ db }) => {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER) STRICT");
    const insert = db.prepare("INSERT INTO t (v) VALUES (?), (?) RETURNING id, v");
    assertEquals(insert.all(1, 2).map((row) => ({ ...row })), [{ id: 1, v: 1 }, { id: 2, v: 2 }]);
    assertEquals({ ...insert.get(3, 4) }, { id: 3, v: 3 });
    insert.run(5, 6);
    assertEquals(db.prepare("SELECT count(*) AS n FROM t").get(), { n: 6 });
  });

  test("rows read at different times are different objects", ({ db }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT; INSERT INTO t VALUES (1)");
    const select = db.prepare("SELECT v FROM t");
    const before = select.get();
    db.exec("UPDATE t SET v = 2");
    assertEquals(select.get(), { v: 2 });
    assertEquals(before, { v: 1 });
  });

  test("a statement can be used again, with other values and after an error", ({ db }) => {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT) STRICT");
    const insert = db.prepare("INSERT INTO t (id, v) VALUES (?, ?)");
    insert.run(1, "a");
    const error = assertThrows(() => insert.run(1, "b"));
    assertEquals(primary(driver.resultCode(error)), 19);
    insert.run(2, null);
    const select = db.prepare("SELECT v FROM t WHERE id = ?");
    assertEquals([1, 2, 3, 1].map((id) => select.get(id)?.["v"]), ["a", null, undefined, "a"]);
  });

  test("a statement survives a change of the schema by another connection", ({ db, other }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT; INSERT INTO t VALUES (1)");
    const select = db.prepare("SELECT v FROM t");
    assertEquals(select.all().length, 1);
    other.exec("ALTER TABLE t ADD COLUMN w TEXT; CREATE INDEX i ON t (v)");
    assertEquals({ ...select.get() }, { v: 1 });
  });

  test("inTransaction follows the connection, whoever begins", ({ db }) => {
    assertEquals(db.inTransaction, false);
    db.prepare("BEGIN IMMEDIATE").run();
    assertEquals(db.inTransaction, true);
    assertEquals(db.inTransaction, true);
    db.prepare("ROLLBACK").run();
    assertEquals(db.inTransaction, false);
    db.exec("SAVEPOINT s");
    assertEquals(db.inTransaction, true);
    db.exec("RELEASE s");
    assertEquals(db.inTransaction, false);
    db.close();
    assertEquals(db.inTransaction, false);
  });

  test("a BEGIN inside a transaction is an SQLITE_ERROR and leaves it open", ({ db }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT");
    db.exec("BEGIN");
    db.prepare("INSERT INTO t VALUES (?)").run(1);
    assertEquals(driver.resultCode(assertThrows(() => db.prepare("BEGIN").run())), 1);
    assertEquals(db.inTransaction, true);
    db.exec("COMMIT");
    assertEquals(db.prepare("SELECT v FROM t").get(), { v: 1 });
  });

  test("a second writer is told SQLITE_BUSY at once", ({ db, other }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT");
    const begin = other.prepare("BEGIN IMMEDIATE");
    const insert = other.prepare("INSERT INTO t VALUES (?) RETURNING v");
    db.exec("BEGIN IMMEDIATE");
    const started = performance.now();
    assertEquals(driver.resultCode(assertThrows(() => begin.run())), BUSY);
    assertEquals(driver.resultCode(assertThrows(() => insert.run(1))), BUSY);
    assertEquals(driver.resultCode(assertThrows(() => insert.get(1))), BUSY);
    assertEquals(driver.resultCode(assertThrows(() => insert.all(1))), BUSY);
    assertEquals(driver.resultCode(assertThrows(() => other.exec("BEGIN IMMEDIATE"))), BUSY);
    assert(performance.now() - started < 2_000, "no busy time-out is set before we set one");
    assertEquals(other.inTransaction, false);
  });

  test("after SQLITE_BUSY the next write of the connection is committed", ({ db, other }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT");
    const begin = other.prepare("BEGIN IMMEDIATE");
    const insert = other.prepare("INSERT INTO t VALUES (?)");
    db.exec("BEGIN IMMEDIATE");
    assertThrows(() => insert.run(1));
    assertThrows(() => begin.run());
    db.exec("COMMIT");
    other.prepare("INSERT INTO t VALUES (2)").run();
    assertEquals(db.prepare("SELECT v FROM t").all().map((row) => row["v"]), [2]);
    db.prepare("INSERT INTO t VALUES (3)").run();
    begin.run();
    insert.run(4);
    other.exec("COMMIT");
    assertEquals(db.prepare("SELECT count(*) AS n FROM t").get(), { n: 3 });
  });

  test("a write on an outdated snapshot is told SQLITE_BUSY_SNAPSHOT", ({ db, other }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT");
    const insert = other.prepare("INSERT INTO t VALUES (?)");
    other.exec("BEGIN");
    other.prepare("SELECT v FROM t").all();
    db.exec("INSERT INTO t VALUES (1)");
    assertEquals(driver.resultCode(assertThrows(() => insert.run(2))), BUSY_SNAPSHOT);
    assertEquals(other.inTransaction, true);
    other.exec("ROLLBACK");
    insert.run(2);
    assertEquals(db.prepare("SELECT count(*) AS n FROM t").get(), { n: 2 });
  });

  test("errors of prepare(), exec() and of a STRICT table carry a code", ({ db }) => {
    db.exec("CREATE TABLE t (v INTEGER UNIQUE NOT NULL) STRICT");
    const codeOf = (fails: () => unknown) => primary(driver.resultCode(assertThrows(fails)));
    assertEquals(codeOf(() => db.exec("SELECT * FROM missing")), 1);
    assertEquals(codeOf(() => db.exec("INSERT INTO t VALUES (1), (1)")), 19);
    assertEquals(codeOf(() => db.prepare("INSERT INTO t VALUES (?)").run("text")), 19);
    assertEquals(codeOf(() => db.prepare("INSERT INTO t VALUES (?)").run(1.5)), 19);
    assertEquals(codeOf(() => db.prepare("INSERT INTO t VALUES (?)").run(null)), 19);
    assert([1, undefined].includes(codeOf(() => db.prepare("SELECT nonsense FROM t").all())));
  });

  test("an error of our own has no result code", () => {
    assertEquals(driver.resultCode(new Error("database is locked")), undefined);
    assertEquals(driver.resultCode(new TypeError("no")), undefined);
    assertEquals(driver.resultCode("database is locked"), undefined);
    assertEquals(driver.resultCode(undefined), undefined);
  });

  test("exec() runs several statements", ({ db }) => {
    db.exec("CREATE TABLE a (v INTEGER); -- a comment\nCREATE TABLE b (v INTEGER);\n");
    assertEquals(
      db.prepare("SELECT name FROM sqlite_schema ORDER BY name").all().map((row) => row["name"]),
      ["a", "b"],
    );
  });

  test("a file that is missing or no database cannot be opened", ({ directory }) => {
    const codeOf = (fails: () => unknown) => driver.resultCode(assertThrows(fails));
    assertEquals(codeOf(() => driver.open(join(directory, "no", "such", "folder"))), 14);
    const path = join(directory, "missing.db");
    assertEquals(codeOf(() => driver.open(path, { readOnly: true })), 14);
    assert(!existsSync(path));
    const text = join(directory, "text.txt");
    writeFileSync(text, "This is not a database. ".repeat(100));
    const db = driver.open(text);
    assert([26, 1].includes(codeOf(() => db.prepare("SELECT * FROM sqlite_schema").all()) ?? 0));
    db.close();
  });

  test("readOnly reads, and a write is SQLITE_READONLY", ({ db, path }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT; INSERT INTO t VALUES (1)");
    const reader = driver.open(path, { readOnly: true });
    assertEquals(reader.prepare("SELECT v FROM t").get(), { v: 1 });
    const error = assertThrows(() => reader.prepare("INSERT INTO t VALUES (?)").run(2));
    assertEquals(primary(driver.resultCode(error)), 8);
    reader.close();
  });

  test("close() finalizes the statements and lets go of the file", ({ db, other, path }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT; INSERT INTO t VALUES (1), (2)");
    const select = db.prepare("SELECT v FROM t WHERE v > ?");
    select.get(0);
    assert(existsSync(`${path}-wal`));
    other.close();
    db.close();
    // Only the last connection that closes cleanly removes it.
    assert(!existsSync(`${path}-wal`));
    assertThrows(() => select.get(0));
    assertThrows(() => select.run(0));
    assertThrows(() => db.prepare("SELECT 1"));
    assertThrows(() => db.exec("SELECT 1"));
  });

  test("a wrapped connection stays open when its wrapper is closed", ({ db }) => {
    assert(driver.owns(db.connection));
    const wrapper = driver.wrap(db.connection);
    assertEquals(wrapper.connection, db.connection);
    wrapper.exec("CREATE TABLE t (v INTEGER) STRICT");
    const insert = wrapper.prepare("INSERT INTO t VALUES (?)");
    db.exec("BEGIN");
    assertEquals(wrapper.inTransaction, true);
    insert.run(2 ** 40);
    wrapper.close();
    assertEquals(db.inTransaction, true);
    db.exec("COMMIT");
    assertEquals(db.prepare("SELECT v FROM t").get(), { v: 2 ** 40 });
  });

  test("a wrapped connection that its owner closes throws, and is in no transaction", ({ db }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT");
    const wrapper = driver.wrap(db.connection);
    const insert = wrapper.prepare("INSERT INTO t VALUES (?)");
    db.exec("BEGIN");
    insert.run(1);
    db.close();
    assertEquals(wrapper.inTransaction, false);
    assertThrows(() => insert.run(2));
    wrapper.close();
  });

  test("a wrapped connection reads alike, whatever its own defaults are", ({ db, path }) => {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER) STRICT");
    const connection = connect(path);
    const wrapper = driver.wrap(connection);
    const insert = wrapper.prepare("INSERT INTO t (v) VALUES (?)");
    assertEquals(told(insert.run(2 ** 40)), [1, 1]);
    const select = wrapper.prepare("SELECT id, v, json_array(v) AS json FROM t");
    assertEquals(select.get(), { id: 1, v: 2 ** 40, json: "[1099511627776]" });
    assertEquals(select.all(), [{ id: 1, v: 2 ** 40, json: "[1099511627776]" }]);
    assertThrows(() => wrapper.prepare("SELECT 9007199254740993 AS v").get(), RangeError);
    wrapper.close();
    connection.close();
  });

  test("an outdated snapshot of a wrapped connection is busy", ({ db, other }) => {
    db.exec("CREATE TABLE t (v INTEGER) STRICT");
    const wrapper = driver.wrap(other.connection);
    other.exec("BEGIN");
    wrapper.prepare("SELECT v FROM t").all();
    db.exec("INSERT INTO t VALUES (1)");
    const error = assertThrows(() => wrapper.prepare("INSERT INTO t VALUES (?)").run(2));
    assertEquals(primary(driver.resultCode(error)), BUSY);
  });

  test("it owns only its own connections", ({ db }) => {
    for (const value of [undefined, null, "db", {}, db, { prepare() {}, exec() {}, close() {} }]) {
      assertEquals(driver.owns(value), false);
    }
  });
}

/** A folder with one database in WAL mode and two connections to it. */
class Scene<Connection> {
  readonly directory: string = mkdtempSync(join(tmpdir(), "alkstore-driver-"));
  readonly path: string = join(this.directory, "test.db");
  readonly db: SqliteDatabase<Connection>;
  readonly other: SqliteDatabase<Connection>;

  constructor(driver: SqliteDriver<Connection>) {
    this.db = driver.open(this.path);
    this.db.exec("PRAGMA journal_mode = WAL");
    this.other = driver.open(this.path);
  }

  dispose(): void {
    for (const db of [this.db, this.other]) {
      try {
        db.close();
      } catch {
        // The test has closed it.
      }
    }
    rmSync(this.directory, { recursive: true });
  }
}

function told(changes: { readonly changes: number; readonly lastInsertRowid: number }) {
  return [changes.changes, changes.lastInsertRowid];
}

function primary(code: number | undefined): number | undefined {
  return code === undefined ? undefined : code & 0xff;
}
