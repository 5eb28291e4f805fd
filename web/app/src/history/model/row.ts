// What a row says of a call. Framework-free.

import type { CallBlock } from "@throughline/client";
import { type State, statusWord } from "../../chat/card/look.ts";
import type { Words } from "../../i18n/words.ts";
import type { HistoryWords } from "../words.ts";

export type Status = NonNullable<CallBlock["status"]>;

/** Something may still become of these. */
export const UNFINISHED: ReadonlySet<string> = new Set<Status>([
  "preparing",
  "queued",
  "awaiting_approval",
  "running",
]);

/** States of a later release are unknown here. */
export function statusOf(status: string, words: Words): Status {
  return isStatus(status, words) ? status : "unknown";
}

function isStatus(status: string, words: Words): status is Status {
  return Object.hasOwn(words.callStatus, status);
}

/** A call as rows have it: what was wrong is told as `code`, or as `code: message`. */
export function stateOf(status: string, words: Words, error?: string | null): State {
  const code = error?.split(":", 1)[0];
  return { status: statusOf(status, words), ...(code ? { error: { code } } : {}) };
}

/** The word on a row. One that has not begun may still be written, or wait for its turn: rows do not say which. */
export function stateWord(state: State, words: Words, own: HistoryWords): string {
  return state.status === "preparing" ? own.preparing : statusWord(state, words);
}

/** Arguments in a line: `city: "Paris", days: 7`; what is no object stays as it is. */
export function argumentsLine(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return text;
  return Object.entries(value)
    .map(([name, part]) => `${name}: ${JSON.stringify(part)}`)
    .join(", ");
}

/** The time of today's calls, to the second; the day of others, to the minute. */
export function moment(at: number, now: number, language: string): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const more = isToday ? ({ second: "2-digit" } as const) : ({ month: "short", day: "numeric" } as const);
  return new Intl.DateTimeFormat(language, { ...time, ...more }).format(at);
}
