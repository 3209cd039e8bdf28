import { CodecError } from "./errors.ts";
import { decodeJson, encodeJson, type Json } from "./json.ts";
import { describe } from "./names.ts";

/**
 * Any validator that speaks Standard Schema (https://standardschema.dev), version 1: zod, valibot,
 * arktype and others. Only the part alkstore calls is described here.
 *
 * @example
 * ```ts
 * import type { StandardSchema } from "@alkstore/alkstore";
 *
 * const port: StandardSchema<number, number> = {
 *   "~standard": {
 *     version: 1,
 *     vendor: "example",
 *     validate: (value) =>
 *       Number.isInteger(value) ? { value: value as number } : { issues: [{ message: "no port" }] },
 *   },
 * };
 * console.log(port["~standard"].vendor);
 * ```
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The Standard Schema interface of the validator. */
  readonly "~standard": {
    /** The version of the interface. */
    readonly version: 1;
    /** The name of the library. */
    readonly vendor: string;
    /** Checks a value. */
    readonly validate: (
      value: unknown,
    ) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Carries the types; absent at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/**
 * What a validator answers: a value, or what is wrong.
 *
 * @example
 * ```ts
 * import type { SchemaResult } from "@alkstore/alkstore";
 *
 * const accepted: SchemaResult<number> = { value: 8080 };
 * const refused: SchemaResult<number> = { issues: [{ message: "not a port" }] };
 * console.log(accepted, refused);
 * ```
 */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/**
 * One fault a validator found.
 *
 * @example
 * ```ts
 * import type { SchemaIssue } from "@alkstore/alkstore";
 *
 * const issue: SchemaIssue = { message: "too long", path: ["items", 3, "name"] };
 * console.log(issue.path);
 * ```
 */
export interface SchemaIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where, from the root of the payload. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * What may be enqueued or published where this schema is used.
 *
 * @example
 * ```ts
 * import type { SchemaInput, StandardSchema } from "@alkstore/alkstore";
 *
 * const input: SchemaInput<StandardSchema<string, Date>> = "2026-01-01";
 * console.log(input);
 * ```
 */
export type SchemaInput<S> = S extends StandardSchema<infer Input, unknown> ? Input : never;

/**
 * What a handler gets where this schema is used.
 *
 * @example
 * ```ts
 * import type { SchemaOutput, StandardSchema } from "@alkstore/alkstore";
 *
 * const output: SchemaOutput<StandardSchema<string, Date>> = new Date("2026-01-01");
 * console.log(output);
 * ```
 */
export type SchemaOutput<S> = S extends StandardSchema<infer _, infer Output> ? Output : never;

/** Accepts nothing or a Standard Schema validator. */
export function checkSchema(schema: unknown, operation: string): StandardSchema | undefined {
  if (schema === undefined) return undefined;
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) {
    throw new TypeError(`${operation}: schema must be a Standard Schema, got ${describe(schema)}`);
  }
  const standard: unknown = Reflect.get(schema, "~standard");
  if (
    typeof standard !== "object" || standard === null ||
    typeof Reflect.get(standard, "validate") !== "function"
  ) {
    throw new TypeError(
      `${operation}: schema must be a Standard Schema, it has no "~standard".validate`,
    );
  }
  return schema as StandardSchema;
}

/**
 * Writes a payload as JSON text. With a schema the payload is checked first, and stored as it was
 * given: the schema's transforms run where it is read.
 */
export function encodePayload(
  schema: StandardSchema | undefined,
  payload: unknown,
  operation: string,
): string | Promise<string> {
  if (schema === undefined) return encodeJson(payload, operation);
  const text = encodeJson(payload, operation);
  const result = schema["~standard"].validate(payload);
  if (!(result instanceof Promise)) {
    outputOf(result, operation);
    return text;
  }
  return result.then((settled) => {
    outputOf(settled, operation);
    return text;
  });
}

/**
 * Encodes the payloads of one call, all before anything is written; a promise only where the schema is
 * asynchronous.
 */
export function encodePayloads(
  schema: StandardSchema | undefined,
  payloads: readonly unknown[],
  operation: string,
): string[] | Promise<string[]> {
  if (!Array.isArray(payloads)) {
    throw new TypeError(`${operation}: payloads must be an array, got ${describe(payloads)}`);
  }
  const texts: string[] = [];
  const later: Promise<void>[] = [];
  for (const [index, payload] of payloads.entries()) {
    const encoded = encodePayload(schema, payload, operation);
    if (typeof encoded === "string") texts[index] = encoded;
    else later.push(encoded.then((text) => void (texts[index] = text)));
  }
  return later.length === 0 ? texts : Promise.all(later).then(() => texts);
}

/** Reads a stored payload through a schema; a promise only where the schema is asynchronous. */
export function decodePayload(
  schema: StandardSchema | undefined,
  text: string,
  operation: string,
): unknown {
  const value: Json = decodeJson(text, operation);
  if (schema === undefined) return value;
  const result = schema["~standard"].validate(value);
  if (!(result instanceof Promise)) return outputOf(result, operation);
  return result.then((settled) => outputOf(settled, operation));
}

/** Like {@linkcode decodePayload}, for callers that cannot wait. */
export function decodePayloadNow(
  schema: StandardSchema | undefined,
  text: string,
  operation: string,
): unknown {
  const value = decodePayload(schema, text, operation);
  if (!(value instanceof Promise)) return value;
  // The caller gets a TypeError; what the validator says later is nobody's.
  value.catch(() => {});
  throw new TypeError(
    `${operation}: the schema validates asynchronously, read the payload in a handler of work() or process()`,
  );
}

function outputOf<Output>(result: SchemaResult<Output>, operation: string): Output {
  if (result.issues === undefined) return result.value;
  const issue = result.issues[0];
  throw new CodecError(operation, pathOf(issue), issue?.message ?? "the schema refused it", {
    cause: result.issues,
  });
}

function pathOf(issue: SchemaIssue | undefined): string {
  let path = "$";
  for (const segment of issue?.path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    path += typeof key === "number" ? `[${key}]` : `.${String(key)}`;
  }
  return path;
}
