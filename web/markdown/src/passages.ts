// A long text in passages of a few blocks, so that unchanged parts are compared as a whole.

import type { Token } from "marked";

/** Blocks per passage: about a screen. */
const BLOCKS = 8;

/** A few blocks with the space between and after them. */
export type Passage = readonly Token[];

export class Passages {
  #passages: readonly Passage[] = [];

  /** Cuts the tokens at stable positions. A passage of unchanged tokens is the same array as before. */
  of(tokens: readonly Token[]): readonly Passage[] {
    const passages: Passage[] = [];
    for (let at = 0; at < tokens.length; ) {
      const end = endOf(tokens, at);
      const before = this.#passages[passages.length];
      const isSame =
        before?.length === end - at && before.every((token, index) => token === tokens[at + index]);
      passages.push(isSame ? before : tokens.slice(at, end));
      at = end;
    }
    this.#passages = passages;
    return passages;
  }
}

function endOf(tokens: readonly Token[], at: number): number {
  let end = at;
  for (let blocks = 0; end < tokens.length; end += 1) {
    if (tokens[end]?.type === "space") continue;
    if (blocks === BLOCKS) break;
    blocks += 1;
  }
  return end;
}
