// Typed values of a form, and the arguments that result. Framework-free.

import { visible } from "@throughline/visible";
import { type Field, isObject, type ObjectField } from "./schema.ts";

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
export type FieldErrorCode = "missing" | "not_a_number" | "not_whole" | "not_json";

/** Errors of a form by the JSON pointer of the field: `/cities/0`. */
export type FieldErrors = ReadonlyMap<string, FieldErrorCode>;

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
): { value: Record<string, unknown>; errors: FieldErrors } {
  const errors = new Map<string, FieldErrorCode>();
  const value = objectOf(form, draft, "", errors);
  return { value, errors };
}

function objectOf(
  form: ObjectField,
  draft: ObjectDraft,
  at: string,
  errors: Map<string, FieldErrorCode>,
): Record<string, unknown> {
  const entries: [string, unknown][] = Object.entries(draft.rest);
  for (const [name, field] of form.fields) {
    const typed = draft.fields[name];
    const value = typed === undefined ? undefined : fieldValue(field, typed, `${at}/${name}`, errors);
    if (value !== undefined) entries.push([name, value]);
  }
  // A key may be `__proto__`.
  return Object.fromEntries(entries);
}

/** Value of a field; `undefined`: absent or invalid. */
function fieldValue(field: Field, draft: Draft, at: string, errors: Map<string, FieldErrorCode>): unknown {
  switch (draft.kind) {
    case "typed":
      if (draft.text === "") return absent(field, at, errors);
      return typedValue(field, draft.text, at, errors);
    case "json":
      return draft.text.trim() === "" ? absent(field, at, errors) : jsonOf(draft.text, at, errors);
    case "list":
      if (!draft.isGiven || field.kind !== "list") return absent(field, at, errors);
      return draft.items.map((item, index) => fieldValue(field.item, item, `${at}/${index}`, errors));
    case "object":
      if (!draft.isGiven || field.kind !== "object") return absent(field, at, errors);
      return objectOf(field, draft, at, errors);
  }
}

function absent(field: Field, at: string, errors: Map<string, FieldErrorCode>): null | undefined {
  if (!field.isRequired) return undefined;
  if (field.isNullable) return null;
  errors.set(at, "missing");
  return undefined;
}

function typedValue(field: Field, text: string, at: string, errors: Map<string, FieldErrorCode>): unknown {
  if (field.kind === "text") return text;
  if (field.kind !== "number") return jsonOf(text, at, errors);
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number)) errors.set(at, "not_a_number");
  else if (field.isWhole && !Number.isInteger(number)) errors.set(at, "not_whole");
  else return number;
  return undefined;
}

function jsonOf(text: string, at: string, errors: Map<string, FieldErrorCode>): unknown {
  try {
    return JSON.parse(text);
  } catch {
    errors.set(at, "not_json");
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
