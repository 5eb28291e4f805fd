// Syntax highlighting as pieces of text, without markup. Loaded with the first closed code block.

import { type Color, type Language, languageOf } from "./languages.ts";

export interface Piece {
  readonly text: string;
  readonly color: Color | undefined;
}

/** Splits code into colored pieces; joined, they are the code. Invalid code only gets fewer colors. */
export function piecesOf(code: string, word: string): readonly Piece[] {
  const language = languageOf(word);
  if (language === undefined) return [{ text: code, color: undefined }];
  const pieces: Piece[] = [];
  const add = (text: string, color: Color | undefined): void => {
    if (text !== "") pieces.push({ text, color });
  };
  let done = 0;
  for (const found of code.matchAll(patternOf(language))) {
    const [text] = found;
    const kind = language.rules[found.findIndex((group, at) => at > 0 && group !== undefined) - 1]?.[0];
    const end = found.index + text.length;
    const color = kind === "word" ? colorOfWord(text, code, found.index, end, language) : kind;
    if (color === undefined) continue;
    add(code.slice(done, found.index), undefined);
    add(text, color);
    done = end;
  }
  add(code.slice(done), undefined);
  return pieces;
}

function colorOfWord(
  word: string,
  code: string,
  start: number,
  end: number,
  language: Language,
): Color | undefined {
  const name = language.ignoresCase ? word.toLowerCase() : word;
  // A member may have the name of a keyword.
  const isMember = code[start - 1] === ".";
  if (!isMember && language.keys.has(name)) return "key";
  if (!isMember && language.values.has(name)) return "number";
  const isCalled = code[end] === "(" || (language.hasTypes && /^\p{Lu}/u.test(word));
  return isCalled ? "name" : undefined;
}

const PATTERNS = new WeakMap<Language, RegExp>();

function patternOf(language: Language): RegExp {
  const known = PATTERNS.get(language);
  if (known !== undefined) return known;
  const made = new RegExp(language.rules.map(([, pattern]) => `(${pattern})`).join("|"), "gu");
  PATTERNS.set(language, made);
  return made;
}
