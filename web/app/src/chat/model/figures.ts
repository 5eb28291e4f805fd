// Figures of a turn. Framework-free.

import type { BlockPosition, MessageHead, WaterfallSegment } from "@throughline/client";

/** Kinds of time in which the model works: waiting for its first token counts, tools and people do not. */
const OWN: ReadonlySet<WaterfallSegment["kind"]> = new Set(["thinking", "text", "arguments"]);
/** Below this no speed is shown. */
const LEAST_MS = 50;

/** Tokens per second of writing time. */
export function tokensPerSecond({ stats, usage }: Pick<MessageHead, "stats" | "usage">): number | undefined {
  const ms = (stats?.segments ?? []).reduce((sum, { kind, ms }) => (OWN.has(kind) ? sum + ms : sum), 0);
  const tokens = usage.output_tokens;
  return tokens === undefined || ms < LEAST_MS ? undefined : Math.round((tokens * 1_000) / ms);
}

/** Duration of a thinking block. Known only if there are as many stretches of thinking as blocks. */
export function thinkingMs(
  segments: readonly WaterfallSegment[],
  outline: readonly BlockPosition[],
  at: number,
): number | undefined {
  const stretches: number[] = [];
  segments.forEach(({ kind, step, ms }, index) => {
    if (kind !== "thinking") return;
    const before = segments[index - 1];
    if (before?.kind === "thinking" && before.step === step)
      stretches[stretches.length - 1] = (stretches.at(-1) ?? 0) + ms;
    else stretches.push(ms);
  });
  const blocks = outline.filter(({ kind }) => kind === "thinking");
  const one = blocks.findIndex((block) => block.at === at);
  return stretches.length === blocks.length ? stretches[one] : undefined;
}
