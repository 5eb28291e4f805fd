// In what groups conversations stand: pinned ones, then by the day on which something last happened. Framework-free.

import type { ConversationInfo } from "@throughline/client";

/** What a group is called: one of the list's own words, or the first moment of a month. */
export type GroupName = "pinned" | "today" | "yesterday" | "last7" | "last30" | number;

export type ListRow =
  | { kind: "group"; name: GroupName }
  | { kind: "conversation"; conversation: ConversationInfo };

/** Days before today, as the calendar counts them. */
const DAYS: readonly (readonly [GroupName, number])[] = [
  ["today", 0],
  ["yesterday", 1],
  ["last7", 7],
  ["last30", 30],
];

/** Rows of a list, each group under its name. `conversations` are in the order of the server. */
export function rowsOf(conversations: readonly ConversationInfo[], now: number): ListRow[] {
  const rows: ListRow[] = [];
  let last: GroupName | undefined;
  for (const conversation of conversations) {
    const name = conversation.pinned_at != null ? "pinned" : groupOf(conversation.updated_at, now);
    if (name !== last) rows.push({ kind: "group", name });
    last = name;
    rows.push({ kind: "conversation", conversation });
  }
  return rows;
}

function groupOf(at: number, now: number): GroupName {
  for (const [name, days] of DAYS) {
    // Through the calendar: a day of a clock change is not 24 hours long.
    const start = new Date(now);
    start.setHours(0, 0, 0, 0);
    start.setDate(start.getDate() - days);
    if (at >= start.getTime()) return name;
  }
  const month = new Date(at);
  month.setHours(0, 0, 0, 0);
  month.setDate(1);
  return month.getTime();
}
