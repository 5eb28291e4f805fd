// Typed values of a form, and the arguments that result. Framework-free.

import { visible } from "@throughline/visible";
import { type Field, isObject, type ObjectField } from "./fields.ts";

/** A value as typed, which may be invalid. */
export type Draft =
  /** Text of a string or number; JSON of a choice or a boolean. Empty: absent. */
  | { kind: "typed"; text: string }
  | { kind: "list"; isGiven: boolean; items: readonly Draft[] }
  | {
      kind: "object";
      isGiven: boolean;
      fields: Readonly<Record<string, Draft>>;
      rest: Readonly<Record<string, unknown>>;
    }
  /** Any JSON; also for values that do not match the field: they are kept until the user changes them. */
  | { kind: "json"; text: string };

export type ObjectDraft = Extract<Draft, { kind: "object" }>;

/** Error of a field. */
export type Flaw = "missing" | "not_a_number" | "not_whole" | "not_json";

/** Errors of a form by the JSON pointer of the field: `/cities/0`. */
export type Flaws = ReadonlyMap<string, Flaw>;

/** Draft for a value; `undefined`: absent. */
export function draftOf(field: Field, value: unknown): Draft {
  const isAbsent = value === undefined || (value === null && field.isNullable);
  const asJson = (): Draft => ({ kind: "json", text: visible(JSON.stringify(value, null, 2)) });
  switch (field.kind) {
    case "text":
      if (isAbsent) return { kind: "typed", text: "" };
      // An empty string would look absent, and invisible characters are visible in JSON.
      return typeof value === "string" && value !== "" && visible(value) === value
        ? { kind: "typed", text: value }
        : asJson();
    case "number":
      if (isAbsent) return { kind: "typed", text: "" };
      return typeof value === "number" && (!field.isWhole || Number.isInteger(value))
        ? { kind: "typed", text: String(value) }
        : asJson();
    case "boolean":
      if (isAbsent) return { kind: "typed", text: "" };
      return typeof value === "boolean" ? { kind: "typed", text: String(value) } : asJson();
    case "choice": {
      if (isAbsent) return { kind: "typed", text: "" };
      const text = JSON.stringify(value);
      return field.choices.some((choice) => JSON.stringify(choice) === text)
        ? { kind: "typed", text }
        : asJson();
    }
    case "json":
      return isAbsent ? { kind: "json", text: "" } : asJson();
    case "list":
      if (isAbsent) return { kind: "list", isGiven: field.isRequired, items: [] };
      return Array.isArray(value)
        ? { kind: "list", isGiven: true, items: value.map((item) => draftOf(field.item, item)) }
        : asJson();
    case "object":
      return isAbsent || isObject(value) ? objectDraft(field, value ?? undefined) : asJson();
  }
}

/** Draft for the arguments of a tool. Members without a field stay as they are. */
export function objectDraft(field: ObjectField, value: Record<string, unknown> | undefined): ObjectDraft {
  const names = new Set(field.fields.map(([name]) => name));
  return {
    kind: "object",
    isGiven: value !== undefined || field.isRequired,
    fields: Object.fromEntries(field.fields.map(([name, one]) => [name, draftOf(one, ownOf(value, name))])),
    rest: Object.fromEntries(Object.entries(value ?? {}).filter(([name]) => !names.has(name))),
  };
}

function ownOf(value: Record<string, unknown> | undefined, name: string): unknown {
  return value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Arguments of a draft, as far as they are valid, with the errors. */
export function argumentsOf(
  form: ObjectField,
  draft: ObjectDraft,
): { value: Record<string, unknown>; flaws: Flaws } {
  const flaws = new Map<string, Flaw>();
  const value = objectOf(form, draft, "", flaws);
  return { value, flaws };
}

function objectOf(
  form: ObjectField,
  draft: ObjectDraft,
  at: string,
  flaws: Map<string, Flaw>,
): Record<string, unknown> {
  const entries: [string, unknown][] = Object.entries(draft.rest);
  for (const [name, field] of form.fields) {
    const typed = draft.fields[name];
    const value = typed === undefined ? undefined : fieldValue(field, typed, `${at}/${name}`, flaws);
    if (value !== undefined) entries.push([name, value]);
  }
  // A key may be `__proto__`.
  return Object.fromEntries(entries);
}

/** Value of a field; `undefined`: absent or invalid. */
function fieldValue(field: Field, draft: Draft, at: string, flaws: Map<string, Flaw>): unknown {
  switch (draft.kind) {
    case "typed":
      if (draft.text === "") return absent(field, at, flaws);
      return typedValue(field, draft.text, at, flaws);
    case "json":
      return draft.text.trim() === "" ? absent(field, at, flaws) : jsonOf(draft.text, at, flaws);
    case "list":
      if (!draft.isGiven || field.kind !== "list") return absent(field, at, flaws);
      return draft.items.map((item, index) => fieldValue(field.item, item, `${at}/${index}`, flaws));
    case "object":
      if (!draft.isGiven || field.kind !== "object") return absent(field, at, flaws);
      return objectOf(field, draft, at, flaws);
  }
}

function absent(field: Field, at: string, flaws: Map<string, Flaw>): null | undefined {
  if (!field.isRequired) return undefined;
  if (field.isNullable) return null;
  flaws.set(at, "missing");
  return undefined;
}

function typedValue(field: Field, text: string, at: string, flaws: Map<string, Flaw>): unknown {
  if (field.kind === "text") return text;
  if (field.kind !== "number") return jsonOf(text, at, flaws);
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number)) flaws.set(at, "not_a_number");
  else if (field.isWhole && !Number.isInteger(number)) flaws.set(at, "not_whole");
  else return number;
  return undefined;
}

function jsonOf(text: string, at: string, flaws: Map<string, Flaw>): unknown {
  try {
    return JSON.parse(text);
  } catch {
    flaws.set(at, "not_json");
    return undefined;
  }
}

/** Arguments typed as JSON. */
export function objectFrom(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
