// Letters at the end of an open text are added to the page as they come: nothing is read and nothing is drawn again until
// something comes that means more. The page is as if it had been.

import type { Block } from "@throughline/client";
import type { GrowingMarkdown, OpenEnd } from "@throughline/markdown";
import { fadeIn } from "./fresh.ts";

export class Growth {
  #block: Readonly<Block> | undefined;
  #root: HTMLElement | undefined;
  #growing: GrowingMarkdown | undefined;
  /** What is on the screen, with what was added to it. */
  #text = "";
  /** Where it goes on; `null`: nowhere; `undefined`: nobody has looked. */
  #end: { end: OpenEnd; node: Text } | null | undefined;

  /** React draws this block. */
  draws(block: Readonly<Block> | undefined): void {
    this.#block = block;
  }

  /** React is about to draw the text: what was added is taken away, for React changes nothing that it believes to be there. */
  undo(): void {
    this.#growing = undefined;
    if (!this.#end) return;
    const { end, node } = this.#end;
    this.#end = null;
    const { length } = end.shown;
    if (node.length > length) node.deleteData(length, node.length - length);
  }

  /** React has drawn the text in this element. */
  drawn(text: string, root: HTMLElement, growing: GrowingMarkdown): void {
    const added = text.length - this.#text.length;
    const node = added > 0 && this.#block?.kind === "text" && this.#block.state === "open" && lastText(root);
    if (node) fadeIn(node, node.length - added, node.length);
    this.#text = text;
    this.#root = root;
    this.#growing = growing;
    this.#end = undefined;
  }

  /** Shows what a block has got; false: it is to be drawn. */
  readonly show = (block: Readonly<Block>): boolean => {
    const drawn = this.#block;
    if (block.kind !== "text" || drawn?.kind !== "text" || this.#growing === undefined) return false;
    if (block.state !== "open" || drawn.state !== "open" || block.citations !== drawn.citations) return false;
    return this.#append(block.text);
  };

  #append(text: string): boolean {
    const before = this.#text;
    if (text.slice(0, before.length) !== before) return false;
    if (this.#end === undefined) this.#end = this.#find();
    const added = this.#end?.end.grown(text.slice(before.length));
    if (added === undefined) return false;
    if (added !== "" && this.#end) {
      const { node } = this.#end;
      node.appendData(added);
      fadeIn(node, node.length - added.length, node.length);
    }
    this.#text = text;
    return true;
  }

  #find(): { end: OpenEnd; node: Text } | null {
    const end = this.#growing?.openEnd();
    if (end === undefined) return null;
    const node = lastText(this.#root);
    // It is on the page to the letter: without entities, and without anything that is spelled out.
    return node?.data === end.shown ? { end, node } : null;
  }
}

/** Where the text of an element ends. */
function lastText(root: HTMLElement | undefined): Text | undefined {
  let node: Node | null | undefined = root;
  while (node instanceof Element) node = node.lastChild;
  return node instanceof Text ? node : undefined;
}
