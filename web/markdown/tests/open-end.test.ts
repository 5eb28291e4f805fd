import fc from "fast-check";
import type { Token } from "marked";
import { describe, expect, test } from "vitest";
import { GrowingMarkdown, read } from "../src/index.ts";
import { documents, NASTY } from "./documents.ts";

type Shown = Record<string, unknown>;

/** Visible part of a token, without its source. */
function shownOf(token: Token): Shown {
  const { raw, tokens, items, text, header, rows, ...rest } = token as Token & Record<string, unknown>;
  const children = (items ?? tokens) as Token[] | undefined;
  const isRow = header !== undefined;
  return {
    ...rest,
    ...(isRow ? { raw } : children ? { children: allShown(children) } : { text: text ?? raw }),
  };
}

/** Space between blocks is not visible. */
function allShown(tokens: readonly Token[]): readonly Shown[] {
  return tokens.filter(({ type }) => type !== "space").map(shownOf);
}

/** The same with more characters in the last text. */
function withLetters(shown: readonly Shown[], letters: string): readonly Shown[] {
  const last = shown.at(-1);
  if (last === undefined) return shown;
  const { children, text } = last as { children?: Shown[]; text?: string };
  const more = children ? { children: withLetters(children, letters) } : { text: `${text}${letters}` };
  return [...shown.slice(0, -1), { ...last, ...more }];
}

/** Adds a text in pieces; after each, the visible result equals that of the whole text. Returns the number of pieces that were not parsed. */
function checkPieces(text: string, cuts: readonly number[]): number {
  const growing = new GrowingMarkdown();
  let [before, added, end, unread] = ["", "", growing.openEnd(), 0];
  let shown: readonly Shown[] = [];
  for (const cut of [...new Set(cuts), text.length].sort((a, b) => a - b)) {
    const prefix = text.slice(0, cut);
    const more = end?.grown(prefix.slice(before.length));
    before = prefix;
    if (more === undefined) {
      shown = allShown(growing.read(prefix));
      [added, end] = ["", growing.openEnd()];
      continue;
    }
    unread += 1;
    added += more;
    expect(withLetters(shown, added), JSON.stringify(prefix)).toEqual(allShown(read(prefix)));
  }
  return unread;
}

const everywhere = (text: string): number[] => Array.from(text.split(""), (_, at) => at);

/** Words that could have a meaning at the open end. */
const WORDS = [
  ..."[]()<>*_~`#$\\&|=-+!.:;,'\"/@^1 \n中。é",
  "  ",
  "\n\n",
  "a",
  "word ",
  "www.",
  "http://",
  "&amp;",
  "1. ",
  "- ",
  "> ",
  "# ",
  "**",
  "[a](",
  '"t")',
  "```",
  "ל",
  "\u200d",
  "\ufe0f",
  "\u200b",
  "→",
];

describe("characters appended without parsing equal parsed ones", () => {
  test("random documents in any pieces", () => {
    fc.assert(
      fc.property(documents, fc.array(fc.nat(300), { maxLength: 30 }), (text, cuts) => {
        checkPieces(text, cuts);
      }),
      { numRuns: 200, endOnFailure: true },
    );
  }, 120_000);

  test("random documents by character", () => {
    fc.assert(
      fc.property(documents, (text) => {
        checkPieces(text, everywhere(text));
      }),
      { numRuns: 300, endOnFailure: true },
    );
  }, 120_000);

  test("lines of special characters by piece", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...WORDS), { maxLength: 24 }), (pieces) => {
        let at = 0;
        checkPieces(
          pieces.join(""),
          pieces.map((piece) => {
            at += piece.length;
            return at;
          }),
        );
      }),
      { numRuns: 3_000 },
    );
  }, 120_000);

  test.each([
    ...NASTY,
    'See [a](https://x.example/(y) "t") and **[b** (c) [d](https://y.example "e f") more',
  ])("%j by character", (text) => {
    checkPieces(text, everywhere(text));
  });
});

test.each([
  "A paragraph of plain words, and another sentence. 中文，也是。",
  "- an item with words\n  - **Name**: and what it is",
  "> a quotation that goes on",
  "## A heading of words",
  "1. first\n2. the second one goes on",
  "```ts\nconst answer = await call(42);\nnext line\n",
])("most of %j is not parsed", (text) => {
  const lines = text.split("\n").length;
  expect(checkPieces(text, everywhere(text))).toBeGreaterThan(text.length / 2 - lines);
});

test("long piece is checked in one pass, plain or not", () => {
  for (const text of ["```js\nlet", "Some words"]) {
    const growing = new GrowingMarkdown();
    growing.read(text);
    const end = growing.openEnd();
    expect(end?.grown(`${"a".repeat(100_000)}\`\`\``)).toBeUndefined();
    expect(end?.grown("a".repeat(100_000))).toHaveLength(100_000);
  }
});
