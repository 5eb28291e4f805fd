// Data of a waterfall chart. Framework-free.

import type { WaterfallSegment } from "@throughline/client";

/** A stretch of a turn's time. */
export interface Part {
  kind: string;
  toolId: string | undefined;
  /** Milliseconds since the turn began. */
  offset: number;
  ms: number;
}

/** Consecutive parts with the same total length as the segments; neighbors of one kind are merged. */
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

/** Total length of the parts. */
export function sumOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + part.ms, 0);
}
