// What a value is best read as. Framework-free.

export type Shape =
  | { kind: "text"; text: string }
  /** Flat objects, which have columns. */
  | {
      kind: "rows";
      value: unknown;
      columns: readonly string[];
      rows: readonly Readonly<Record<string, unknown>>[];
    }
  | { kind: "json"; value: unknown };

/** More columns than this are no table that anybody reads. */
const COLUMNS_MAX = 12;
/** A text that is longer is not tried as JSON. */
const JSON_CHARS_MAX = 4_000_000;

export function shapeOf(value: unknown): Shape {
  if (typeof value !== "string") return structured(value);
  const parsed = jsonOf(value);
  return parsed === undefined ? { kind: "text", text: value } : structured(parsed);
}

/** As people write JSON. A text is itself. */
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

/** Only objects and lists: a number that is printed is a text. */
function jsonOf(text: string): unknown {
  if (text.length > JSON_CHARS_MAX || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
