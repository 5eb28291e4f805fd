import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GrowingMarkdown, read } from "../src/index.ts";
import { documents, NASTY } from "./documents.ts";

/** Parses a text in pieces; after each, the tokens equal those of the whole text, and settled ones stay the same objects. */
function checkPieces(text: string, cuts: readonly number[], everyPrefix: boolean): void {
  const growing = new GrowingMarkdown();
  for (const cut of [...new Set(cuts), text.length].sort((a, b) => a - b)) {
    const prefix = text.slice(0, cut);
    const tokens = growing.read(prefix);
    if (everyPrefix || cut >= text.length) expect(tokens, JSON.stringify(prefix)).toEqual(read(prefix));
  }
  expect(growing.complete(text)).toEqual(read(text));
}

describe("growing Markdown equals Markdown parsed at once", () => {
  test("random documents in any pieces", () => {
    fc.assert(
      fc.property(documents, fc.array(fc.nat(300), { maxLength: 20 }), (text, cuts) => {
        checkPieces(text, cuts, true);
      }),
      { numRuns: 300 },
    );
  }, 120_000);

  test("random documents by character", () => {
    fc.assert(
      fc.property(documents, (text) => {
        checkPieces(
          text,
          Array.from(text.split(""), (_, at) => at),
          false,
        );
      }),
      { numRuns: 200 },
    );
  }, 120_000);

  test.each(NASTY)("%j by character and with any cut", (text) => {
    checkPieces(
      text,
      Array.from(text.split(""), (_, at) => at),
      true,
    );
    for (let cut = 0; cut <= text.length; cut += 1) checkPieces(text, [cut], true);
  });
});

test("long block is parsed in steps, without gaps, and complete at the end", () => {
  fc.assert(
    fc.property(documents, fc.nat(3), fc.array(fc.nat(3_000), { maxLength: 40 }), (text, kind, cuts) => {
      const long = text + LONG[kind]?.(60);
      const pieces = new GrowingMarkdown(256);
      for (const cut of cuts.sort((a, b) => a - b)) pieces.read(long.slice(0, cut));
      const tokens = pieces.read(long);
      expect(tokens.map(({ raw }) => raw).join("")).toBe(long.replace(/\r\n?/g, "\n"));
      expect(pieces.complete(long)).toEqual(read(long));
    }),
    { numRuns: 200 },
  );
}, 120_000);

test("settled tokens stay the same objects", () => {
  const growing = new GrowingMarkdown();
  const before = growing.read("# a\n\nb\n\nc\n\nd");
  const after = growing.read("# a\n\nb\n\nc\n\nd and more\n\ne");
  expect(after[0]).toBe(before[0]);
  expect(after[1]).toBe(before[1]);
});

test("shortened text is parsed again", () => {
  const growing = new GrowingMarkdown();
  growing.read("# a\n\nb\n\nc\n\nd");
  expect(growing.read("# a\n\nother")).toEqual(read("# a\n\nother"));
});

const LONG: readonly ((lines: number) => string)[] = [
  (lines) => `\n\n\`\`\`js\n${"let answer = compute(42);\n".repeat(lines)}`,
  (lines) => `\n\n${"words that go on and on without an end\n".repeat(lines)}`,
  (lines) => `\n\n${"- an item of a list with **bold**\n".repeat(lines)}`,
  (lines) => `\n\n| a | b |\n|---|---|\n${"| one cell | and another |\n".repeat(lines)}`,
];

const MIXED =
  "## A part\n\nWords with **bold** and `code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n";

/** Number of lexed characters for a text of this length, in pieces of four. */
function cost(text: string): number {
  const growing = new GrowingMarkdown();
  for (let at = 4; at <= text.length; at += 4) growing.read(text.slice(0, at));
  return growing.lexedChars;
}

describe("48,000 characters in 12,000 pieces take linear time", () => {
  test.each([
    ["parts of all kinds", (chars: number) => MIXED.repeat(chars / MIXED.length + 1), 200],
    ["one fence", (chars: number) => LONG[0]?.(chars / 20) ?? "", 1],
    ["one paragraph", (chars: number) => LONG[1]?.(chars / 20) ?? "", 400],
    ["one list", (chars: number) => LONG[2]?.(chars / 20) ?? "", 400],
    ["one table", (chars: number) => LONG[3]?.(chars / 20) ?? "", 400],
  ])(
    "%s",
    (_, make, perChar) => {
      const half = cost(make(24_000).slice(0, 24_000));
      const whole = cost(make(48_000).slice(0, 48_000));
      expect(whole).toBeLessThan(48_000 * perChar);
      expect(whole).toBeLessThan(half * 2.2 + 1_000);
    },
    120_000,
  );
});
