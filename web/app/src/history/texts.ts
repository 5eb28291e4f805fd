// Formats of dates and numbers in the history. Framework-free.

import { grouped } from "../i18n/en.ts";

/** A full date and time. */
export const FULL: Intl.DateTimeFormatOptions = { dateStyle: "full", timeStyle: "medium" };

/** Tokens read and written: `1,240 → 80`. */
export function tokensText(read: number | null | undefined, written: number | null | undefined): string {
  if (read == null && written == null) return "";
  return `${read == null ? "?" : grouped(read)} → ${written == null ? "?" : grouped(written)}`;
}
