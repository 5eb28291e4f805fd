// What has just been written fades in, as ranges over the text that is there: no element is made for it, and none is laid out again.

/** A range stands in each of these for so long, then in the next one; after the last it is text like any other. */
const STAGES = ["fresh-1", "fresh-2", "fresh-3"] as const;
const STAGE_MS = 50;
/** What comes with more than that at once is there at once: a text that was loaded, or a reconnect. */
const FRESH_CHARS_MAX = 400;
/** Of a page that draws no frames no more is remembered. */
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

/** The characters of a text node between two places have just come; those before its beginning stand in other nodes. */
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
