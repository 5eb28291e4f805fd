// How dates and numbers of a turn are written. Framework-free.

import { grouped } from "../i18n/en.ts";

/** A day and a time in full. */
export const FULL: Intl.DateTimeFormatOptions = { dateStyle: "full", timeStyle: "medium" };

/** `1,240 → 80`: read and written. */
export function tokensText(read: number | null | undefined, written: number | null | undefined): string {
  if (read == null && written == null) return "";
  return `${read == null ? "?" : grouped(read)} → ${written == null ? "?" : grouped(written)}`;
}
