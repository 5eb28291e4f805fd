// New text fades in, as highlight ranges over the existing text: no elements are created, and nothing is laid out again.

/** Highlight of each stage; a range moves from one to the next, and is removed after the last. */
const STAGES = ["fresh-1", "fresh-2", "fresh-3"] as const;
const STAGE_MS = 50;
/** More text than this at once does not fade in: it was loaded, or came with a reconnect. */
const FRESH_CHARS_MAX = 400;
/** Ranges that are kept while a page draws no frames. */
const PIECES_MAX = 100;

interface Piece {
  range: StaticRange;
  stage: number;
  since: number;
}

const hasHighlights = typeof CSS !== "undefined" && "highlights" in CSS && typeof Highlight === "function";
const isStill = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)");
const stages = hasHighlights
  ? STAGES.map((name) => {
      const highlight = new Highlight();
      CSS.highlights.set(name, highlight);
      return highlight;
    })
  : [];
let pieces: Piece[] = [];

/** Fades in the characters between two offsets of a text node; earlier characters may be in other nodes. */
export function fadeIn(node: Text, from: number, to: number): void {
  if (stages.length === 0 || isStill?.matches || document.hidden) return;
  if (to <= from || to - from > FRESH_CHARS_MAX || pieces.length >= PIECES_MAX) return;
  const startOffset = Math.max(0, from);
  const range = new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset: to });
  if (pieces.length === 0) requestAnimationFrame(step);
  pieces.push({ range, stage: 0, since: performance.now() });
  stages[0]?.add(range);
}

function step(now: number): void {
  const rest: Piece[] = [];
  for (const piece of pieces) {
    const stage = Math.floor((now - piece.since) / STAGE_MS);
    if (stage > piece.stage) {
      stages[piece.stage]?.delete(piece.range);
      stages[stage]?.add(piece.range);
      piece.stage = stage;
    }
    if (stage < stages.length) rest.push(piece);
  }
  pieces = rest;
  if (rest.length > 0) requestAnimationFrame(step);
}
