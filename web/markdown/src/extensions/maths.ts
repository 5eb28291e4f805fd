// Maths in the notations of models: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`. Possible prices and escaped brackets are text.

import type { Token } from "marked";
import type { Maths } from "../tokens.ts";

/** Maximum length of a formula; a longer one is text. */
const FORMULA_CHARS_MAX = 4_000;
const BLANK_LINE = /\n[ \t]*\n/;
const LINE = /^ {0,3}(?=\$\$|\\\[)/;
/** A display formula that ends a paragraph. */
export const MATHS_LINE = /\n(?= {0,3}(?:\$\$|\\\[))/;
/** Quick check for formulas in a text. */
export const MAY_BE_MATHS = /\$|\\[([]/;
/** After this, a bracket is an escaped one. */
const ESCAPE_OR_LETTER = /[A-Za-z\d]$|\\[^\w\s]$/;
/** Removes commands with their arguments, so that `5 and CA` remains to be checked. */
const COMMAND = /\\[a-z]+\*?\s*(?:\{[^{}]*\})?/gi;

/** A display formula; an incomplete one, as long as its end may still come. */
export function mathsBlock(src: string): Maths | undefined {
  const indent = LINE.exec(src)?.[0].length;
  if (indent === undefined) return undefined;
  const found = display(src.slice(indent));
  if (found !== undefined) {
    const rest = /^[ \t]*(?=\n|$)/.exec(src.slice(indent + found.raw.length))?.[0];
    return rest === undefined
      ? undefined
      : { ...found, raw: src.slice(0, indent + found.raw.length + rest.length) };
  }
  const mark = src.slice(indent, indent + 2);
  const body = src.slice(indent + 2);
  const mayGoOn = src.length <= FORMULA_CHARS_MAX && !BLANK_LINE.test(src) && !closesAnywhere(body, mark);
  if (!mayGoOn || (mark === "\\[" && !/^\s/.test(body))) return undefined;
  return { type: "maths", raw: src, text: body.trim(), isDisplay: true, isClosed: false };
}

/** An inline formula. */
export function maths(src: string, before: string): Maths | undefined {
  if (src.startsWith("$$")) return before.endsWith("$") ? undefined : display(src);
  if (src.startsWith("\\[")) return ESCAPE_OR_LETTER.test(before) ? undefined : display(src);
  if (src.startsWith("\\(")) return ESCAPE_OR_LETTER.test(before) ? undefined : between(src, "\\(", "\\)");
  if (src.startsWith("$`")) return between(src, "$`", "`$");
  if (src.startsWith("$")) return /[A-Za-z\d$\\]$/.test(before) ? undefined : dollars(src);
  return undefined;
}

/** Passes the end of the preceding text. */
export function mathsIn(src: string, before: readonly Token[]): Maths | undefined {
  return maths(src, before.at(-1)?.raw ?? "");
}

/** The text with formulas replaced by letters, so that their `*` and `_` are no emphasis. `masked`: code and links are replaced already. */
export function withoutMaths(source: string, masked: string): string {
  if (source.length !== masked.length || !MAY_BE_MATHS.test(source)) return masked;
  let text = masked;
  for (let at = 0; at < source.length; at += 1) {
    if (source[at] === "\\" && source[at + 1] !== "(" && source[at + 1] !== "[") at += 1;
    else if ((masked[at] === "$" || masked[at] === "+") && /[$\\]/.test(source[at] ?? "")) {
      const found = maths(source.slice(at, at + FORMULA_CHARS_MAX), source.slice(Math.max(0, at - 2), at));
      if (found === undefined) continue;
      const end = at + found.raw.length;
      text = `${text.slice(0, at)}${"a".repeat(found.raw.length)}${text.slice(end)}`;
      at = end - 1;
    }
  }
  return text;
}

function display(src: string): Maths | undefined {
  const found = src.startsWith("$$") ? between(src, "$$", "$$") : between(src, "\\[", "\\]");
  return found && { ...found, isDisplay: true };
}

/** A formula between two delimiters; a backslash escapes the next character. */
function between(src: string, open: string, close: string): Maths | undefined {
  if (!src.startsWith(open)) return undefined;
  const end = endOf(src, open.length, close);
  if (end === undefined) return undefined;
  const text = src.slice(open.length, end);
  if (text.trim() === "" || BLANK_LINE.test(text)) return undefined;
  return {
    type: "maths",
    raw: src.slice(0, end + close.length),
    text: text.trim(),
    isDisplay: false,
    isClosed: true,
  };
}

function endOf(src: string, start: number, close: string): number | undefined {
  const last = Math.min(src.length, FORMULA_CHARS_MAX);
  for (let at = start; at < last; at += 1) {
    if (src.startsWith(close, at)) return at;
    if (src[at] === "\\") at += 1;
  }
  return undefined;
}

function closesAnywhere(body: string, mark: string): boolean {
  return endOf(body, 0, mark === "$$" ? "$$" : "\\]") !== undefined;
}

/** `$x$`: no space inside of the delimiters, no digit after them, and nothing that may be prices. */
function dollars(src: string): Maths | undefined {
  if (/^\$[\s$]/.test(src)) return undefined;
  const end = endOf(src, 1, "$");
  if (end === undefined || end === 1 || /\s/.test(src[end - 1] ?? "") || /\d/.test(src[end + 1] ?? ""))
    return undefined;
  const text = src.slice(1, end);
  if (text.includes("`") || BLANK_LINE.test(text) || isPrice(text)) return undefined;
  return { type: "maths", raw: src.slice(0, end + 1), text, isDisplay: false, isClosed: true };
}

function isPrice(text: string): boolean {
  if (!/^\d/.test(text)) return false;
  const words = text.replace(COMMAND, " ");
  return /\p{L}{3,}|\s\p{L}{2,}(?:\s|$)|[,;:]\s/u.test(words);
}
