/**
 * The `@db/sqlite` driver: SQLite through Deno's FFI. The one module that knows the `Deno` global.
 *
 * Everything here goes through the library's public surface, and leans on how it is written
 * (0.13): see the reasons at each place.
 */
import type {
  SqliteChanges,
  SqliteDatabase,
  SqliteDriver,
  SqliteRow,
  SqliteStatement,
  SqliteValue,
} from "../driver.ts";
import { exact, resultCodeOfMessage } from "./results.ts";

/** What is needed of a `@db/sqlite` statement. */
export interface FfiStatement {
  /** Whether integers above 32 bits are read right. */
  int64?: boolean;
  /** Whether JSON values are parsed. */
  parseJson?: boolean;
  /** Runs the statement and returns the number of changed rows. */
  run(...parameters: SqliteValue[]): number;
  /** All rows. */
  all(...parameters: SqliteValue[]): object[];
  /** The columns of the first row. */
  value(...parameters: SqliteValue[]): unknown[] | undefined;
  /** Frees the statement; throws the error of its last run, if that failed. */
  finalize(): void;
}

/** What is needed of a `@db/sqlite` connection (`Database`). */
export interface FfiConnection {
  /** Whether the connection is open. */
  readonly open: boolean;
  /** Whether a transaction is open. */
  readonly inTransaction: boolean;
  /** Whether statements may keep what they know of their columns. */
  unsafeConcurrency: boolean;
  /** Runs several statements without parameters. */
  exec(sql: string): unknown;
  /** Prepares one statement. */
  prepare(sql: string): FfiStatement;
  /** Finalizes all statements and closes the connection. */
  close(): void;
}

interface FfiModule {
  readonly Database: new (
    path: string,
    options: { flags: number; int64: boolean; parseJson: boolean },
  ) => FfiConnection;
}

const READONLY = 0x1;
const READWRITE = 0x2;
const CREATE = 0x4;
const EXTENDED_RESULT_CODES = 0x0200_0000;

/** The result codes of the errors that carry only a message. */
const codes = new WeakMap<object, number>();

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name === "SqliteError" && "code" in error && typeof error.code === "number") {
    return error.code;
  }
  return codes.get(error);
}

/** Notes the code of an error that `prepare` or `exec` threw. */
function classified(error: unknown): unknown {
  if (error instanceof Error && resultCode(error) === undefined) {
    codes.set(error, resultCodeOfMessage(error.message));
  }
  return error;
}

class Changes implements SqliteChanges {
  readonly changes: number;
  readonly #database: Database;

  constructor(changes: number, database: Database) {
    this.changes = changes;
    this.#database = database;
  }

  /** Asked for when it is read: the question costs 0.3 µs, an update of one row 1.1 µs. */
  get lastInsertRowid(): number {
    return this.#database.lastInsertRowid;
  }
}

class Statement<Row> implements SqliteStatement<Row> {
  readonly #database: Database;
  readonly #sql: string;
  #statement: FfiStatement | undefined;

  constructor(database: Database, sql: string) {
    this.#database = database;
    this.#sql = sql;
    this.#statement = database.compile(sql);
  }

  run(...parameters: readonly SqliteValue[]): SqliteChanges {
    const statement = this.#usable();
    try {
      return new Changes(statement.run(...parameters), this.#database);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  get(...parameters: readonly SqliteValue[]): Row | undefined {
    // Not the library's get(): it lets go of the bound texts before it reads the row, and SQLite
    // may still point at them; and without parameters it returns the same object every time.
    return this.all(...parameters)[0];
  }

  all(...parameters: readonly SqliteValue[]): Row[] {
    const statement = this.#usable();
    let rows: Row[];
    try {
      rows = statement.all(...parameters) as Row[];
    } catch (error) {
      throw this.#failed(error);
    }
    for (const row of rows) exact(row);
    return rows;
  }

  finalize(): void {
    this.#statement?.finalize();
    this.#statement = undefined;
  }

  #usable(): FfiStatement {
    this.#database.requireOpen();
    return this.#statement ??= this.#database.compile(this.#sql);
  }

  /**
   * Frees the statement and learns the result code. The library leaves a failed statement un-reset,
   * and one that was busy then stays active: later auto-commit writes of the connection would
   * return without having been committed, hold the write lock and be lost.
   */
  #failed(error: unknown): unknown {
    const statement = this.#statement;
    this.#statement = undefined;
    try {
      statement?.finalize();
    } catch (reason) {
      const code = resultCode(reason);
      if (error instanceof Error && code !== undefined) codes.set(error, code);
    }
    return error;
  }
}

class Database implements SqliteDatabase<FfiConnection> {
  readonly connection: FfiConnection;
  readonly #owned: boolean;
  readonly #statements = new Set<Statement<unknown>>();
  readonly #lastInsertRowid: FfiStatement;
  #closed = false;

  constructor(connection: FfiConnection, owned: boolean) {
    this.connection = connection;
    this.#owned = owned;
    this.#lastInsertRowid = this.compile("SELECT last_insert_rowid()");
  }

  get inTransaction(): boolean {
    return this.connection.inTransaction;
  }

  /** The library's own `lastInsertRowId` is cut to 32 bits. */
  get lastInsertRowid(): number {
    this.requireOpen();
    return Number(this.#lastInsertRowid.value()?.[0]);
  }

  exec(sql: string): void {
    this.requireOpen();
    try {
      this.connection.exec(sql);
    } catch (error) {
      throw classified(error);
    }
  }

  prepare<Row = SqliteRow>(sql: string): SqliteStatement<Row> {
    const statement = new Statement<Row>(this, sql);
    this.#statements.add(statement);
    return statement;
  }

  /** Prepares `sql` with settings of its own, whatever the connection's are. */
  compile(sql: string): FfiStatement {
    this.requireOpen();
    const { connection } = this;
    const { unsafeConcurrency } = connection;
    try {
      // Only a statement made under this flag keeps its column names and its row function, instead
      // of compiling one at each call (one row: 2.0 µs instead of 4.9). The SQL here names its
      // columns, so they cannot change; the statements of others keep the connection's setting.
      connection.unsafeConcurrency = true;
      const statement = connection.prepare(sql);
      statement.int64 = true;
      statement.parseJson = false;
      return statement;
    } catch (error) {
      throw classified(error);
    } finally {
      connection.unsafeConcurrency = unsafeConcurrency;
    }
  }

  /** Anything done with a connection or statement that was freed may crash the process. */
  requireOpen(): void {
    if (this.#closed || !this.connection.open) {
      throw new Error("The database connection is not open");
    }
  }

  close(): void {
    const isOpen = !this.#closed && this.connection.open;
    this.#closed = true;
    if (this.#owned) return this.connection.close();
    if (!isOpen) return;
    for (const statement of this.#statements) statement.finalize();
    this.#statements.clear();
    this.#lastInsertRowid.finalize();
  }
}

/**
 * Whether `@db/sqlite` may load without a prompt: with FFI, environment, network and file access
 * granted as a whole, or with FFI alone where `DENO_SQLITE_PATH` can be read and names a library.
 * False outside Deno. Asks nobody.
 */
export async function ffiIsGranted(): Promise<boolean> {
  if (!("Deno" in globalThis)) return false;
  const granted = async (descriptor: Deno.PermissionDescriptor) =>
    (await Deno.permissions.query(descriptor)).state === "granted";
  if (!await granted({ name: "ffi" })) return false;
  if (
    await granted({ name: "env", variable: "DENO_SQLITE_PATH" }) &&
    await granted({ name: "env", variable: "DENO_SQLITE_LOCAL" }) &&
    Deno.env.get("DENO_SQLITE_PATH")
  ) return true;
  // Without it the library is looked for in the cache and downloaded into it.
  return await granted({ name: "env" }) && await granted({ name: "net" }) &&
    await granted({ name: "read" }) && await granted({ name: "write" });
}

/** Loads `@db/sqlite`, which downloads its library at first use unless `DENO_SQLITE_PATH` is set. */
export async function loadFfi(): Promise<SqliteDriver<FfiConnection>> {
  if (!("Deno" in globalThis)) throw new Error("There is no FFI outside Deno");
  const { Database: Library }: FfiModule = await import("@db/sqlite");
  return {
    name: "ffi",
    open(path, options) {
      // With extended result codes finalize() tells SQLITE_BUSY_SNAPSHOT from SQLITE_BUSY.
      const flags = EXTENDED_RESULT_CODES | (options?.readOnly ? READONLY : READWRITE | CREATE);
      return new Database(new Library(path, { flags, int64: true, parseJson: false }), true);
    },
    owns: (connection) => connection instanceof Library,
    wrap: (connection) => new Database(connection, false),
    resultCode,
  };
}
