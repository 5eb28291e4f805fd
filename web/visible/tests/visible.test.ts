// Escaping of invisible characters, with the vectors of the Rust crate.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { exact, parts, visible } from "../src/index.ts";

interface Vectors {
  hidden: readonly (readonly [string, string])[];
  cases: readonly { about: string; text: string; value?: string; prose?: string; exact?: string }[];
}

const file = new URL("../../../crates/wire/tests/visible.json", import.meta.url);
const { hidden, cases }: Vectors = JSON.parse(readFileSync(file, "utf8"));

describe("escaping equals the vectors", () => {
  test.each(cases)("$about", ({ text, value, prose, exact: decided }) => {
    expect(visible(text)).toBe(value ?? text);
    expect(exact(text)).toBe(decided ?? value ?? text);
    expect(exact(exact(text))).toBe(exact(text));
    expect(parts(text, true).join("")).toBe(prose ?? text);
    expect(visible(visible(text))).toBe(visible(text));
  });
});

test("all of Unicode is classified like the vectors", () => {
  const ranges = hidden.map(
    ([first, last]) => [Number.parseInt(first, 16), Number.parseInt(last, 16)] as const,
  );
  const failures: string[] = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    const isLoneSurrogate = code >= 0xd800 && code <= 0xdfff;
    const stays = code === 9 || code === 10;
    const listed = isLoneSurrogate || ranges.some(([first, last]) => first <= code && code <= last);
    const isShown = visible(String.fromCodePoint(code)) === String.fromCodePoint(code);
    if (isShown !== (stays || !listed)) failures.push(code.toString(16));
  }
  expect(failures).toEqual([]);
});

test("unpaired surrogate, which the server's JSON never has", () => {
  expect(visible("a\ud83d b\udc00")).toBe("a\\ud83d b\\udc00");
});

test("text of a JSON value stays that value", () => {
  const value = { when: "\u202e2026-11-24", "n\u200b": ["\u{e0041}", "\\u202e", "\ud83d"] };
  expect(JSON.parse(visible(JSON.stringify(value, undefined, 2)))).toEqual(value);
  expect(JSON.parse(exact(JSON.stringify(value, undefined, 2)))).toEqual(value);
});
