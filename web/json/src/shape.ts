// The best view of a value. Framework-free.

export type Shape =
  | { kind: "text"; text: string }
  /** Flat objects with the same columns. */
  | {
      kind: "rows";
      value: unknown;
      columns: readonly string[];
      rows: readonly Readonly<Record<string, unknown>>[];
    }
  | { kind: "json"; value: unknown };

/** Maximum number of columns of a table. */
const COLUMNS_MAX = 12;
/** Longer texts are not parsed as JSON. */
const JSON_CHARS_MAX = 4_000_000;

export function shapeOf(value: unknown): Shape {
  if (typeof value !== "string") return structured(value);
  const parsed = jsonOf(value);
  return parsed === undefined ? { kind: "text", text: value } : structured(parsed);
}

/** Formatted JSON; a text as it is. */
export function pretty(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

function structured(value: unknown): Shape {
  if (typeof value !== "object" || value === null) return { kind: "text", text: pretty(value) };
  if (!Array.isArray(value) || value.length === 0) return { kind: "json", value };
  const rows: Record<string, unknown>[] = [];
  const columns = new Set<string>();
  for (const row of value) {
    if (!isFlat(row)) return { kind: "json", value };
    for (const name of Object.keys(row)) columns.add(name);
    rows.push(row);
  }
  if (columns.size === 0 || columns.size > COLUMNS_MAX) return { kind: "json", value };
  return { kind: "rows", value, columns: [...columns], rows };
}

function isFlat(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((one) => typeof one !== "object" || one === null);
}

/** Parses objects and arrays only: a printed number is a text. */
function jsonOf(text: string): unknown {
  if (text.length > JSON_CHARS_MAX || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
