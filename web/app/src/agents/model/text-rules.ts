// Text rules as they are typed. What they match, the server alone knows. Framework-free.

import type { AgentSettings, TextRuleBody } from "@throughline/client";

export const TARGETS = ["shown", "model"] as const;
export const ROLES = ["assistant", "tool", "user"] as const;
export type Role = (typeof ROLES)[number];

export interface TextRuleDraft {
  /** It keeps it wherever it is moved. */
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

/** A message of the user is shown as its author wrote it, so no rule can be about that. */
export function withTarget(draft: TextRuleDraft, target: string): TextRuleDraft {
  const roles = target === "shown" ? draft.roles.filter((role) => role !== "user") : draft.roles;
  return { ...draft, target, roles: roles.length > 0 ? roles : ["assistant"] };
}

/** The rule is in its place and does nothing. */
const ASLEEP: TextRuleBody = { pattern: ".", hide: true, in: "shown", enabled: false };

/** For a preview while somebody types: a rule without a pattern is no mistake yet. */
export function unfinished(settings: AgentSettings): AgentSettings {
  const { text_rules } = settings;
  if (text_rules === undefined) return settings;
  return { ...settings, text_rules: text_rules.map((rule) => (rule.pattern === "" ? ASLEEP : rule)) };
}
