import { statSync } from "node:fs";

/**
 * Tells whether the file at a path is still the one that was opened. By `stat`, never by opening it:
 * closing any descriptor of a database file drops all the locks this process has on it.
 */
export class FileIdentity {
  readonly #path: string;
  readonly #first: string | undefined;

  /** The file that is at `path` now is the one. */
  constructor(path: string) {
    this.#path = path;
    this.#first = identify(path);
  }

  /** What became of the file: `"deleted"`, `"replaced"`, or nothing as far as can be told. */
  get loss(): "deleted" | "replaced" | undefined {
    const current = identify(this.#path);
    if (current === GONE) return "deleted";
    // Without the permission to look, only the connection can tell.
    if (current === undefined || this.#first === undefined) return undefined;
    return current === this.#first ? undefined : "replaced";
  }
}

const GONE = "gone";

/** Device and inode of the file, or nothing when it may not be looked at. */
function identify(path: string): string | undefined {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.dev}:${stat.ino}`;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "ENOENT" || code === "ENOTDIR" ? GONE : undefined;
  }
}
