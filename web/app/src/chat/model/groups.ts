// Grouping of blocks for display. Framework-free.

import type { Block, BlockPosition } from "@throughline/client";

const DEED_CHARS_MAX = 40;

/** One block, or consecutive finished calls. */
export type Row = { kind: "block"; at: number } | { kind: "group"; calls: readonly BlockPosition[] };

/** Consecutive finished calls form one row; failed, waiting and not yet foldable calls stay separate. */
export function rowsOf(outline: readonly BlockPosition[], foldable?: ReadonlySet<number>): readonly Row[] {
  const rows: Row[] = [];
  let calls: BlockPosition[] = [];
  const flush = (): void => {
    if (calls.length > 1) rows.push({ kind: "group", calls });
    else rows.push(...calls.map(({ at }): Row => ({ kind: "block", at })));
    calls = [];
  };
  for (const position of outline) {
    const mayFold = foldable?.has(position.at) ?? true;
    if (position.kind === "tool_call" && position.status === "success" && mayFold) calls.push(position);
    else {
      flush();
      rows.push({ kind: "block", at: position.at });
    }
  }
  flush();
  return rows;
}

/** Summary of calls: `Weather: Paris · Oslo; Calendar`. */
export function summaryOf(blocks: readonly (Readonly<Block> | undefined)[]): string {
  const summaries = new Map<string, string[]>();
  for (const block of blocks) {
    if (block?.kind !== "tool_call") continue;
    const name = block.title || (block.tool_name ?? "?");
    summaries.set(name, [...(summaries.get(name) ?? []), firstArgumentOf(block)]);
  }
  return [...summaries]
    .map(([name, requested]) =>
      [name, requested.filter((one) => one !== "").join(" · ")].filter(Boolean).join(": "),
    )
    .join("; ");
}

/** First argument of a call, without its name. */
function firstArgumentOf({ ran_with, arguments: requested }: Extract<Block, { kind: "tool_call" }>): string {
  const value: unknown = ran_with ?? requested;
  if (typeof value !== "object" || value === null) return "";
  const [first] = Object.values(value);
  return typeof first === "string" || typeof first === "number" ? String(first).slice(0, DEED_CHARS_MAX) : "";
}
