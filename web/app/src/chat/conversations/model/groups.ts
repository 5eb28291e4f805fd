// Groups of conversations: pinned ones, then by the day of the last activity. Framework-free.

import type { ConversationInfo } from "@throughline/client";

/** Name of a group: a fixed one, or the first moment of a month. */
export type GroupName = "pinned" | "today" | "yesterday" | "last7" | "last30" | number;

export type ListRow =
  | { kind: "group"; name: GroupName }
  | { kind: "conversation"; conversation: ConversationInfo };

/** Calendar days before today. */
const DAYS: readonly (readonly [GroupName, number])[] = [
  ["today", 0],
  ["yesterday", 1],
  ["last7", 7],
  ["last30", 30],
];

/** Rows of the list, each group under its name. `conversations` are in the server's order. */
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
    // By calendar: a day with a clock change is not 24 hours long.
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
