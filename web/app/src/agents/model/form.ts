// Settings of an agent as a form: conversion between typed values and settings. The server defines the fields.
// Framework-free.

import type { AgentField, AgentSettings } from "@throughline/client";
import { isObject } from "../../shared/schema-form/schema.ts";
import { jsonOr, type RuleDraft, ruleDraft, ruleOf } from "./rules.ts";
import { type TextRuleDraft, textRuleDraft, textRuleOf } from "./text-rules.ts";

/** State of the form. Numbers and JSON are kept as typed, so that no input is lost. */
export interface Draft {
  /** Typed values by path. */
  fields: Readonly<Record<string, string | boolean>>;
  /** `tool_toggles` */
  toggles: Readonly<Record<string, boolean>>;
  rules: readonly RuleDraft[];
  /** Preset of rules after the agent's own; empty: none. */
  permissions: string;
  textRules: readonly TextRuleDraft[];
}

type Fields = readonly AgentField[];

export function draftOf(fields: Fields, settings: AgentSettings): Draft {
  return {
    fields: Object.fromEntries(fields.map(({ path, kind }) => [path, typed(kind, valueAt(settings, path))])),
    toggles: settings.tool_call?.tool_toggles ?? {},
    rules: (settings.policy ?? []).map(ruleDraft),
    permissions: settings.permissions ?? "",
    textRules: (settings.text_rules ?? []).map(textRuleDraft),
  };
}

/** Settings from the form. Settings without a field stay unchanged; invalid numbers are left to the server to refuse. */
export function settingsOf(fields: Fields, before: AgentSettings, draft: Draft): AgentSettings {
  const settings = structuredClone(before);
  for (const { path, kind } of fields) put(settings, path, settingOf(kind, draft.fields[path] ?? ""));
  put(settings, "tool_call.tool_toggles", draft.toggles);
  settings.policy = draft.rules.map(ruleOf);
  put(settings, "permissions", draft.permissions || undefined);
  settings.text_rules = draft.textRules.map(textRuleOf);
  return settings;
}

/** Whether saving would change anything. */
export function isChanged(fields: Fields, before: AgentSettings, draft: Draft): boolean {
  const plain = (draft: Draft): string => JSON.stringify(settingsOf(fields, before, draft));
  return plain(draft) !== plain(draftOf(fields, before));
}

/** The value at `tool_call.mode`. */
export function valueAt(settings: unknown, path: string): unknown {
  return path.split(".").reduce((at, name) => (isObject(at) ? at[name] : undefined), settings);
}

function put(settings: object, path: string, value: unknown): void {
  const names = path.split(".");
  const last = names.pop() ?? "";
  let at = settings as Record<string, unknown>;
  for (const name of names) {
    const inside = isObject(at[name]) ? at[name] : {};
    // A section whose fields are all empty is left out.
    if (value === undefined && Object.keys(inside).length === 0) return;
    at[name] = inside;
    at = inside;
  }
  if (value === undefined) delete at[last];
  else at[last] = value;
}

function typed(kind: string, value: unknown): string | boolean {
  if (kind === "switch") return value === true;
  if (kind === "lines" && Array.isArray(value)) return value.join("\n");
  if (value === undefined || value === null) return "";
  if (kind !== "json") return String(value);
  return isObject(value) && Object.keys(value).length === 0 ? "" : JSON.stringify(value, null, 2);
}

/** The value of a field; `undefined`: empty. */
function settingOf(kind: string, typed: string | boolean): unknown {
  if (typeof typed === "boolean") return typed;
  const text = typed.trim();
  if (kind === "lines") return text === "" ? [] : text.split(/\s*\n\s*/);
  if (kind === "model") return text;
  if (text === "") return undefined;
  if (kind === "number") return Number.isFinite(Number(text)) ? Number(text) : typed;
  return kind === "json" ? jsonOr(typed) : typed;
}

/** True if the server's error is about this field, or about a part of it. */
export function isAt(param: string | undefined, path: string): boolean {
  const name = param?.replace(/^settings\./, "");
  return name === path || name?.startsWith(`${path}.`) === true || name?.startsWith(`${path}[`) === true;
}
