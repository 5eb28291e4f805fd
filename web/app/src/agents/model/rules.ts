// Approval rules as typed. Only the server interprets them. Framework-free.

import { isObject } from "../../shared/schema-form/schema.ts";

export const DECISIONS = ["allow", "ask", "deny"] as const;
export const EFFECTS = ["pure", "read", "cosmetic", "idempotent", "write", "external"] as const;
export const TESTS = ["equals", "one_of", "glob", "starts_with", "under", "host"] as const;

/** Default decision without a matching rule; empty: by the effect of the tool. */
export const PERMISSIONS = ["", "read_only", "workspace", "everything"] as const;

/** A condition on one argument. */
export interface TestDraft {
  /** Name or JSON pointer. */
  which: string;
  test: string;
  value: string;
}

export interface RuleDraft {
  /** Stable key, kept when the rule is moved. */
  key: number;
  decide: string;
  /** Patterns, with commas between them. */
  tool: string;
  source: string;
  effect: readonly string[];
  tests: readonly TestDraft[];
  reason: string;
}

let keys = 0;

export function ruleDraft(rule: unknown): RuleDraft {
  const body = isObject(rule) ? rule : {};
  const tests = isObject(body.arguments) ? Object.entries(body.arguments) : [];
  keys += 1;
  return {
    key: keys,
    decide: typeof body.decide === "string" ? body.decide : "ask",
    tool: listOf(body.tool).join(", "),
    source: listOf(body.source).join(", "),
    effect: listOf(body.effect),
    tests: tests.map(([which, how]) => {
      const [test, value] = (isObject(how) && Object.entries(how)[0]) || ["equals", ""];
      return { which, test, value: typedAs(test, value) };
    }),
    reason: typeof body.reason === "string" ? body.reason : "",
  };
}

export function ruleOf({ decide, tool, source, effect, tests, reason }: RuleDraft): unknown {
  const patterns = (text: string): string | string[] | undefined => {
    const parts = commas(text);
    return parts.length > 1 ? parts : parts[0];
  };
  return {
    decide,
    tool: patterns(tool),
    source: patterns(source),
    effect: effect.length > 0 ? effect : undefined,
    arguments:
      tests.length > 0
        ? Object.fromEntries(tests.map(({ which, test, value }) => [which, { [test]: meant(test, value) }]))
        : undefined,
    reason: reason || undefined,
  };
}

/** Conditions that cannot be saved: without an argument, or a second one for the same argument. */
export function strayTests({ tests }: RuleDraft): ReadonlySet<TestDraft> {
  return new Set(
    tests.filter(
      (test, at) => test.which === "" || tests.findIndex(({ which }) => which === test.which) < at,
    ),
  );
}

/** The number of the rule of an agent that decides, from 1: `rule:2 ask files.*`. */
export function numberOf(rule: string | null | undefined): number | undefined {
  const number = /^rule:(\d+)/.exec(rule ?? "")?.[1];
  return number === undefined ? undefined : Number(number);
}

function listOf(value: unknown): string[] {
  return value === undefined ? [] : [value].flat().map(String);
}

function commas(text: string): string[] {
  return text
    .split(/[,，]/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function meant(test: string, text: string): unknown {
  if (test === "equals") return jsonOr(text);
  if (test !== "one_of") return text;
  const list = jsonOr(text);
  return Array.isArray(list) ? list : commas(text).map(jsonOr);
}

/** The text to type for this value. */
function typedAs(test: string, value: unknown): string {
  if (test === "one_of") return manyText(value);
  return test === "equals" || typeof value !== "string" ? oneText(value) : value;
}

/** A text that would be parsed as something else is written as JSON. */
function oneText(value: unknown): string {
  return typeof value === "string" && jsonOr(value) === value ? value : JSON.stringify(value);
}

function manyText(value: unknown): string {
  const texts = Array.isArray(value) ? value.map(oneText) : [];
  const isPlain = (text: string): boolean =>
    text !== "" && !text.startsWith("[") && commas(text).join("\n") === text;
  return texts.length > 0 && texts.every(isPlain) ? texts.join(", ") : JSON.stringify(value);
}

/** The text parsed as JSON; the text itself if it is not JSON. */
export function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
