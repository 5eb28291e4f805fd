// Fields of a form for a JSON Schema. Framework-free.

/** Properties of every field. */
interface FieldMeta {
  description: string | undefined;
  isRequired: boolean;
  /** Accepts `null`. */
  isNullable: boolean;
  /** Default value, as JSON. */
  fallback: string | undefined;
}

export type Field = FieldMeta &
  (
    | { kind: "text"; isLong: boolean }
    | { kind: "number"; isWhole: boolean; minimum: number | undefined; maximum: number | undefined }
    | { kind: "boolean" }
    | { kind: "choice"; choices: readonly unknown[] }
    | { kind: "list"; item: Field }
    | ObjectField
    /** A field that is edited as JSON. */
    | { kind: "json" }
  );

export type ObjectField = FieldMeta & { kind: "object"; fields: readonly (readonly [string, Field])[] };

type Schema = Readonly<Record<string, unknown>>;

/** Strings that may be longer get several lines. */
const LINE_CHARS_MAX = 1_000;
/** Deeper levels are edited as JSON. */
const DEPTH_MAX = 8;

/** Form of a tool. Arguments are always an object, whatever the schema. */
export function formOf(schema: unknown): ObjectField {
  const root: Schema = isObject(schema) ? schema : {};
  const read = new Reader(root).field(root, true, []);
  return read.kind === "object" ? read : { ...metaOf({}, true, false), kind: "object", fields: [] };
}

class Reader {
  readonly #root: Schema;

  constructor(root: Schema) {
    this.#root = root;
  }

  /** `inside`: references on the way to here, to detect cycles. */
  field(given: unknown, isRequired: boolean, inside: readonly string[]): Field {
    const { schema, isNullable, path } = this.#plain(given, inside);
    const meta = metaOf(schema, isRequired, isNullable);
    if (path === undefined || path.length > DEPTH_MAX) return { ...meta, kind: "json" };
    if ("const" in schema) return { ...meta, kind: "choice", choices: [schema.const] };
    if (Array.isArray(schema.enum)) {
      const choices = schema.enum.filter((one) => one !== null);
      return {
        ...meta,
        isNullable: isNullable || choices.length < schema.enum.length,
        kind: "choice",
        choices,
      };
    }
    switch (typeOf(schema)) {
      case "string":
        return {
          ...meta,
          kind: "text",
          isLong: typeof schema.maxLength === "number" && schema.maxLength > LINE_CHARS_MAX,
        };
      case "number":
      case "integer":
        return {
          ...meta,
          kind: "number",
          isWhole: typeOf(schema) === "integer",
          minimum: numberOf(schema.minimum),
          maximum: numberOf(schema.maximum),
        };
      case "boolean":
        return { ...meta, kind: "boolean" };
      case "array":
        return isObject(schema.items)
          ? { ...meta, kind: "list", item: this.field(schema.items, true, [...path, ""]) }
          : { ...meta, kind: "json" };
      case "object":
        return this.#object(schema, meta, path);
      default:
        return { ...meta, kind: "json" };
    }
  }

  #object(schema: Schema, meta: FieldMeta, path: readonly string[]): Field {
    const isRoot = path.length === 0;
    const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
    // An object with arbitrary keys has no fields.
    if (properties.length === 0 && !isRoot) return { ...meta, kind: "json" };
    const required = Array.isArray(schema.required) ? schema.required : [];
    const fields = properties.map(
      ([name, property]) => [name, this.field(property, required.includes(name), [...path, ""])] as const,
    );
    return { ...meta, kind: "object", fields };
  }

  /** Resolves references, and removes an optional `null`. `path` is absent for a cycle. */
  #plain(
    given: unknown,
    inside: readonly string[],
  ): { schema: Schema; isNullable: boolean; path: readonly string[] | undefined } {
    let schema: Schema = isObject(given) ? given : {};
    let isNullable = Array.isArray(schema.type) && schema.type.includes("null");
    let path = inside;
    for (;;) {
      const { $ref: reference } = schema;
      if (typeof reference === "string") {
        const target = this.#at(reference);
        if (target === undefined || path.includes(reference)) return { schema, isNullable, path: undefined };
        path = [...path, reference];
        schema = { ...target, ...without(schema, "$ref") };
        continue;
      }
      const key = ["anyOf", "oneOf", "allOf"].find((key) => Array.isArray(schema[key]));
      if (key === undefined) return { schema, isNullable, path };
      const ways: unknown[] = Array.isArray(schema[key]) ? schema[key] : [];
      const others = ways.filter((way) => !(isObject(way) && way.type === "null"));
      const [only] = others;
      if (others.length !== 1 || !isObject(only)) return { schema, isNullable, path: undefined };
      isNullable ||= others.length < ways.length;
      schema = { ...only, ...without(schema, key) };
    }
  }

  /** Resolves a reference, `#/$defs/City`. */
  #at(reference: string): Schema | undefined {
    if (!reference.startsWith("#/")) return undefined;
    let here: unknown = this.#root;
    for (const part of reference.slice(2).split("/")) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      if (!isObject(here) || !Object.hasOwn(here, name)) return undefined;
      here = here[name];
    }
    return isObject(here) ? here : undefined;
  }
}

function metaOf(schema: Schema, isRequired: boolean, isNullable: boolean): FieldMeta {
  const { description, default: fallback } = schema;
  return {
    description: typeof description === "string" && description !== "" ? description : undefined,
    isRequired,
    isNullable,
    fallback:
      fallback === undefined || fallback === null || fallback === "" ? undefined : JSON.stringify(fallback),
  };
}

/** The only type besides `null`. */
function typeOf({ type, properties, items }: Schema): string | undefined {
  if (typeof type === "string") return type;
  if (Array.isArray(type)) {
    const others = type.filter((one) => one !== "null");
    return others.length === 1 ? String(others[0]) : undefined;
  }
  if (isObject(properties)) return "object";
  return isObject(items) ? "array" : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function without(schema: Schema, key: string): Schema {
  const { [key]: _, ...rest } = schema;
  return rest;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
