// Limits of use as they are typed. Framework-free.

import type { UsageLimitsBody } from "@throughline/client";

export const LIMITS = [
  "turns_per_day_max",
  "turns_per_month_max",
  "tokens_per_day_max",
  "tokens_per_month_max",
] as const;
export type Limit = (typeof LIMITS)[number];
export type TypedLimits = Readonly<Record<Limit, string>>;

export const NO_LIMITS: TypedLimits = {
  turns_per_day_max: "",
  turns_per_month_max: "",
  tokens_per_day_max: "",
  tokens_per_month_max: "",
};

/** What would have to be typed for these limits. */
export function typedLimits(limits: UsageLimitsBody): TypedLimits {
  const typed = LIMITS.map((limit) => [limit, String(limits[limit] ?? "")]);
  return { ...NO_LIMITS, ...Object.fromEntries(typed) };
}

/** `5,000,000` and `5000000` are the same; `undefined`: no whole number. Nothing is no limit. */
export function numberIn(text: string): number | null | undefined {
  const digits = text.replace(/[\s,，_]/g, "");
  if (digits === "") return null;
  return /^\d+$/.test(digits) ? Number(digits) : undefined;
}

/** Limits as typed; `undefined` if one of them is no number. */
export function limitsIn(typed: TypedLimits): UsageLimitsBody | undefined {
  const limits = LIMITS.map((limit) => [limit, numberIn(typed[limit])] as const);
  return limits.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(limits);
}
