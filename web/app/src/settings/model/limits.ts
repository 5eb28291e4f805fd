// Conversion of usage limits to and from typed text. Framework-free.

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

/** Limits as text for the form. */
export function typedLimits(limits: UsageLimitsBody): TypedLimits {
  const typed = LIMITS.map((limit) => [limit, String(limits[limit] ?? "")]);
  return { ...NO_LIMITS, ...Object.fromEntries(typed) };
}

/** Parses `5,000,000` or `5000000`; `undefined`: not a whole number, `null`: empty, no limit. */
export function numberIn(text: string): number | null | undefined {
  const digits = text.replace(/[\s,，_]/g, "");
  if (digits === "") return null;
  return /^\d+$/.test(digits) ? Number(digits) : undefined;
}

/** Typed limits; `undefined` if one of them is invalid. */
export function limitsIn(typed: TypedLimits): UsageLimitsBody | undefined {
  const limits = LIMITS.map((limit) => [limit, numberIn(typed[limit])] as const);
  return limits.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(limits);
}
