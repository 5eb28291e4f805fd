// What a waterfall is drawn from. Framework-free.

import type { WaterfallSegment } from "@throughline/client";

/** A stretch of a turn's time. */
export interface Part {
  kind: string;
  toolId: string | undefined;
  /** Since the turn began, in milliseconds. */
  offset: number;
  ms: number;
}

/** One after the other, as long together as the segments: neighbors that are the same thing are one. */
export function partsOf(segments: readonly WaterfallSegment[]): Part[] {
  const parts: Part[] = [];
  let offset = 0;
  for (const { kind, ms, tool_id: toolId } of segments) {
    if (ms <= 0) continue;
    const last = parts.at(-1);
    if (last?.kind === kind && last.toolId === toolId) last.ms += ms;
    else parts.push({ kind, toolId, offset, ms });
    offset += ms;
  }
  return parts;
}

/** All of them together. */
export function sumOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + part.ms, 0);
}
