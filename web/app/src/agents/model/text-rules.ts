// Text rules as typed. Only the server interprets them. Framework-free.

import type { AgentSettings, TextRuleBody } from "@throughline/client";

export const TARGETS = ["shown", "model"] as const;
export const ROLES = ["assistant", "tool", "user"] as const;
export type Role = (typeof ROLES)[number];

export interface TextRuleDraft {
  /** Stable key, kept when the rule is moved. */
  key: number;
  name: string;
  pattern: string;
  isHiding: boolean;
  replace: string;
  target: string;
  roles: readonly string[];
  isEnabled: boolean;
}

let keys = 0;

export function textRuleDraft(rule: TextRuleBody): TextRuleDraft {
  keys += 1;
  return {
    key: keys,
    name: rule.name ?? "",
    pattern: rule.pattern,
    isHiding: rule.hide === true,
    replace: rule.replace ?? "",
    target: rule.in,
    roles: rule.target_roles ?? ["assistant"],
    isEnabled: rule.enabled !== false,
  };
}

export function textRuleOf(draft: TextRuleDraft): TextRuleBody {
  const { name, pattern, isHiding, replace, target, roles, isEnabled } = draft;
  return {
    ...(name === "" ? {} : { name }),
    pattern,
    ...(isHiding ? { hide: true } : { replace }),
    in: target,
    target_roles: [...roles],
    ...(isEnabled ? {} : { enabled: false }),
  };
}

/** Messages of users are always shown as written, so no rule can target their display. */
export function withTarget(draft: TextRuleDraft, target: string): TextRuleDraft {
  const roles = target === "shown" ? draft.roles.filter((role) => role !== "user") : draft.roles;
  return { ...draft, target, roles: roles.length > 0 ? roles : ["assistant"] };
}

/** A rule that keeps its position and does nothing. */
const ASLEEP: TextRuleBody = { pattern: ".", hide: true, in: "shown", enabled: false };

/** Settings for a preview during typing: a rule without a pattern is not an error yet. */
export function unfinished(settings: AgentSettings): AgentSettings {
  const { text_rules } = settings;
  if (text_rules === undefined) return settings;
  return { ...settings, text_rules: text_rules.map((rule) => (rule.pattern === "" ? ASLEEP : rule)) };
}
