// Characters that are appended without rendering: after every piece, the DOM equals that of a full render.

import { act, cleanup, render } from "@testing-library/react";
import { type Event, TurnStore } from "@throughline/client";
import { useBlock } from "@throughline/client/react";
import fc from "fast-check";
import { useState } from "react";
import { expect, test } from "vitest";
import { Growth } from "../src/chat/blocks/markdown/growth.ts";
import { Markdown } from "../src/chat/blocks/markdown/markdown.tsx";
import { OWN_EXAMPLES } from "./examples.ts";

/** A block as on the page; counts its renders. */
function Shown({ store, draw }: { store: TurnStore; draw: () => void }) {
  const [growth] = useState(() => new Growth());
  const block = useBlock(store, 0, growth.show);
  growth.draws(block);
  draw();
  return block?.kind === "text" ? (
    <Markdown text={block.text} isOpen={block.state === "open"} growth={growth} />
  ) : null;
}

function event(seq: number, fields: object): Event {
  return JSON.parse(JSON.stringify({ turn_id: "t", timestamp: 1, seq, ...fields }));
}

/** Ids of footnotes begin with those of their message; attributes are not ordered. */
const page = (element: Element): string => element.innerHTML.replace(/_r_\w+_/g, "");
const parsed = (element: Element) => new DOMParser().parseFromString(page(element), "text/html");

function checkSame(shown: Element, whole: Element, what: string): void {
  const isSame = parsed(shown).isEqualNode(parsed(whole));
  expect(isSame, `${what}\n${page(shown)}\n${page(whole)}`).toBe(true);
}

/** Shows a text in pieces; after each, the DOM equals that of a full render. Returns the number of renders and of pieces. */
function checkPieces(pieces: readonly string[]): { drawn: number; pieces: number } {
  const store = new TurnStore(undefined, (flush) => flush());
  let [drawn, seq, text] = [0, 1, ""];
  store.take(event(seq, { type: "block_start", block: 0, kind: "text" }));
  const { container } = render(
    <Shown
      store={store}
      draw={() => {
        drawn += 1;
      }}
    />,
  );
  for (const piece of pieces) {
    seq += 1;
    text += piece;
    act(() => store.take(event(seq, { type: "content_delta", block: 0, text: piece })));
    const whole = render(<Markdown text={text} isOpen />);
    checkSame(container, whole.container, JSON.stringify(text));
    // Also as nodes: no text is split into two.
    expect(container.isEqualNode(whole.container) || page(container).includes("note-")).toBe(true);
    whole.unmount();
  }
  act(() => store.take(event(seq + 1, { type: "block_end", block: 0 })));
  const closed = render(<Markdown text={text} isOpen={false} />);
  checkSame(container, closed.container, JSON.stringify(text));
  cleanup();
  return { drawn, pieces: pieces.length };
}

function cut(text: string, cuts: readonly number[]): string[] {
  const offsets = [...new Set([0, ...cuts.filter((at) => at < text.length), text.length])].sort(
    (a, b) => a - b,
  );
  return offsets.slice(1).map((end, at) => text.slice(offsets[at], end));
}

const WORDS = [
  ..."[]()<>*_~`#$\\&|=-+!.:;,'\"/@^1 \n中。",
  "\n\n",
  "a",
  "word ",
  "www.",
  "&amp;",
  "1. ",
  "- ",
  "> ",
  "**",
  "```",
  "\u200d",
  "\u200b",
  "→",
];

test("every example equals a full render at every cut", () => {
  for (const [text] of OWN_EXAMPLES) checkPieces(text.split(""));
}, 60_000);

test("special characters equal a full render in any order and pieces", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 20 }), (pieces) => {
      checkPieces(pieces);
    }),
    { numRuns: 150, endOnFailure: true },
  );
}, 60_000);

test("plain growth renders only a few times", () => {
  for (const text of [
    "Words of a sentence that goes on, and on. And another one",
    "- an item that goes on and on in many words of its own",
    "> a quotation that goes on and on in many words of its own",
    "```ts\nconst answer = await call(42, { now: true });\nreturn answer;",
  ]) {
    const { drawn, pieces } = checkPieces(
      cut(
        text,
        [...text].map((_, at) => at),
      ),
    );
    expect(drawn, text).toBeLessThan(pieces / 3);
  }
});

test("removed and reinterpreted characters are shown once", () => {
  checkPieces(["see ", "w", "ww", ".example", ".org now"]);
  checkPieces(["<", "di", "v", ">\n\nx"]);
  checkPieces('[a](https://x.example "t") end'.split(""));
  checkPieces(["Some words", " and more", "\n===\n\nend"]);
});
