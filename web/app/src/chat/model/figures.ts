// Figures of a turn. Framework-free.

import type { BlockPosition, MessageHead, WaterfallSegment } from "@throughline/client";

/** When the model itself is at work: its first token is waited for, and tools and people are none of its own. */
const OWN: ReadonlySet<WaterfallSegment["kind"]> = new Set(["thinking", "text", "arguments"]);
/** In less than this nothing can be said about a speed. */
const LEAST_MS = 50;

/** Tokens that the model wrote in each second in which it wrote. */
export function tokensPerSecond({ stats, usage }: Pick<MessageHead, "stats" | "usage">): number | undefined {
  const ms = (stats?.segments ?? []).reduce((sum, { kind, ms }) => (OWN.has(kind) ? sum + ms : sum), 0);
  const tokens = usage.output_tokens;
  return tokens === undefined || ms < LEAST_MS ? undefined : Math.round((tokens * 1_000) / ms);
}

/** How long the thinking in a block took. It can be told where there are as many stretches of it as blocks. */
export function thinkingMs(
  segments: readonly WaterfallSegment[],
  outline: readonly BlockPosition[],
  at: number,
): number | undefined {
  const stretches: number[] = [];
  segments.forEach(({ kind, step, ms }, place) => {
    if (kind !== "thinking") return;
    const before = segments[place - 1];
    if (before?.kind === "thinking" && before.step === step)
      stretches[stretches.length - 1] = (stretches.at(-1) ?? 0) + ms;
    else stretches.push(ms);
  });
  const blocks = outline.filter(({ kind }) => kind === "thinking");
  const one = blocks.findIndex((block) => block.at === at);
  return stretches.length === blocks.length ? stretches[one] : undefined;
}
