// Appends plain characters at the end of an open text directly to the DOM, without parsing or rendering, until something comes that
// may be Markdown. The DOM is the same as if all of it had been rendered.

import type { Block } from "@throughline/client";
import type { GrowingMarkdown, OpenEnd } from "@throughline/markdown";
import { fadeIn } from "./fresh.ts";

export class Growth {
  #block: Readonly<Block> | undefined;
  #root: HTMLElement | undefined;
  #growing: GrowingMarkdown | undefined;
  /** Text on the screen, with what was appended. */
  #text = "";
  /** Insertion point; `null`: none; `undefined`: not determined yet. */
  #end: { end: OpenEnd; node: Text } | null | undefined;

  /** React renders this block. */
  draws(block: Readonly<Block> | undefined): void {
    this.#block = block;
  }

  /** Removes the appended text before React renders: React must find the DOM that it made. */
  undo(): void {
    this.#growing = undefined;
    if (!this.#end) return;
    const { end, node } = this.#end;
    this.#end = null;
    const { length } = end.shown;
    if (node.length > length) node.deleteData(length, node.length - length);
  }

  /** React has rendered the text in this element. */
  drawn(text: string, root: HTMLElement, growing: GrowingMarkdown): void {
    const added = text.length - this.#text.length;
    const node = added > 0 && this.#block?.kind === "text" && this.#block.state === "open" && lastText(root);
    if (node) fadeIn(node, node.length - added, node.length);
    this.#text = text;
    this.#root = root;
    this.#growing = growing;
    this.#end = undefined;
  }

  /** Shows a change of the block; false: it must be rendered. */
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
    // The text must be in the DOM literally: without entities, and without escapes of invisible characters.
    return node?.data === end.shown ? { end, node } : null;
  }
}

/** Last text node of an element. */
function lastText(root: HTMLElement | undefined): Text | undefined {
  let node: Node | null | undefined = root;
  while (node instanceof Element) node = node.lastChild;
  return node instanceof Text ? node : undefined;
}
