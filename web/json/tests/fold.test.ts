import { expect, test } from "vitest";
import { folded } from "../src/index.ts";

test.each([
  ["ПРИВЕТ Ёж", "привет ёж"],
  ["ÉCOLE Ærø", "école ærø"],
  ["ΟΔΟΣ οδος οδοσ", "οδοσ οδοσ οδοσ"],
  ["Straße STRAẞE", "straße straße"],
  ["İstanbul ISPARTA ısparta", "istanbul isparta isparta"],
  ["ՀԱՅԵՐԵՆ", "հայերեն"],
  ["ᲥᲐᲠᲗᲣᲚᲘ", "ქართული"],
  ["ᏣᎳᎩ ꮳꮃꭹ", "ꮳꮃꭹ ꮳꮃꭹ"],
  ["𐐔𐐇𐐝 𞤀𞤁", "𐐼𐐯𐑅 𞤢𞤣"],
  ["ＡＢＣ１２", "abc12"],
  ["天氣，한국어 שלום مرحبا नमस्ते ไทย", "天氣，한국어 שלום مرحبا नमस्ते ไทย"],
  ["\ud83d lone \udc00 ABC", "\ud83d lone \udc00 abc"],
])("%s is found as %s", (text, expected) => {
  expect(folded(text)).toBe(expected);
  expect(folded(expected)).toBe(expected);
});

test("every letter is folded like its other case, and offsets stay", () => {
  const failures: string[] = [];
  for (let code = 0; code < 0x20000; code += 1) {
    const letter = String.fromCodePoint(code);
    const small = folded(letter);
    const others = [letter.toLowerCase(), letter.toUpperCase()].filter((other) => [...other].length === 1);
    if (small.length !== letter.length || others.some((other) => folded(other) !== small))
      failures.push(letter);
  }
  expect(failures).toEqual([]);
});
