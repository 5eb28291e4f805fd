// Which blocks are drawn together. Framework-free.

import type { Place } from "@throughline/client";

/** One block, or finished calls that follow each other. */
export type Row = { kind: "block"; at: number } | { kind: "group"; calls: readonly Place[] };

/** Two finished calls in a row are one line; what failed, or needs somebody, stays by itself. */
export function rowsOf(outline: readonly Place[]): readonly Row[] {
  const rows: Row[] = [];
  let calls: Place[] = [];
  const flush = (): void => {
    if (calls.length > 1) rows.push({ kind: "group", calls });
    else rows.push(...calls.map(({ at }): Row => ({ kind: "block", at })));
    calls = [];
  };
  for (const place of outline) {
    if (place.kind === "tool_call" && place.status === "success") calls.push(place);
    else {
      flush();
      rows.push({ kind: "block", at: place.at });
    }
  }
  flush();
  return rows;
}

/** `weather ×2, calendar.list`. */
export function namesOf(calls: readonly Place[]): string {
  const counts = new Map<string, number>();
  for (const { tool } of calls) counts.set(tool ?? "?", (counts.get(tool ?? "?") ?? 0) + 1);
  return [...counts].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
}
