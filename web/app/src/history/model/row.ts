// Texts of a row for a call. Framework-free.

import type { CallBlock } from "@throughline/client";
import type { Words } from "../../i18n/words.ts";
import { type State, statusWord } from "../../shared/call-card/tone.ts";
import type { HistoryWords } from "../words.ts";

export type Status = NonNullable<CallBlock["status"]>;

/** Statuses that may still change. */
export const UNFINISHED: ReadonlySet<string> = new Set<Status>([
  "preparing",
  "queued",
  "awaiting_approval",
  "running",
]);

/** Statuses of later releases count as unknown. */
export function statusOf(status: string, words: Words): Status {
  return isStatus(status, words) ? status : "unknown";
}

function isStatus(status: string, words: Words): status is Status {
  return Object.hasOwn(words.callStatus, status);
}

/** State of a call in a row, whose error is `code` or `code: message`. */
export function stateOf(status: string, words: Words, error?: string | null): State {
  const code = error?.split(":", 1)[0];
  return { status: statusOf(status, words), ...(code ? { error: { code } } : {}) };
}

/** Label of the status. A pending call may still be written or be queued: rows do not distinguish these. */
export function stateWord(state: State, words: Words, texts: HistoryWords): string {
  return state.status === "preparing" ? texts.preparing : statusWord(state, words);
}

/** Arguments in one line: `city: "Paris", days: 7`; values other than objects stay as they are. */
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

/** Time of a call: today to the second, otherwise the date to the minute. */
export function moment(at: number, now: number, language: string): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const more = isToday ? ({ second: "2-digit" } as const) : ({ month: "short", day: "numeric" } as const);
  return new Intl.DateTimeFormat(language, { ...time, ...more }).format(at);
}
