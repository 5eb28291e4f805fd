// `<details>` with Markdown inside: up to the closing tag, ignoring fenced code.

import type { Lexer, Token } from "marked";
import type { Details } from "../tokens.ts";

/** Nesting limit; deeper ones are text. */
const DEPTH_MAX = 6;
const OPENING = /^ {0,3}<details(\s+open(?:="(?:open|true)?")?)?\s*>/i;
const SUMMARY = /^\s*<summary>([\s\S]*?)<\/summary>/i;
const MARKS = /<(\/?)details(?:\s+open(?:="(?:open|true)?")?)?\s*>|^ {0,3}(`{3,}|~{3,})([^\n]*)$/gim;

const depths = new WeakMap<Lexer, number>();

export function details(this: { lexer: Lexer }, src: string): Details | undefined {
  const opening = OPENING.exec(src);
  const depth = depths.get(this.lexer) ?? 0;
  if (opening === null || depth >= DEPTH_MAX) return undefined;
  const [tag, open] = opening;
  const end = endOf(src, tag.length);
  const body = src.slice(tag.length, end?.from);
  const summary = SUMMARY.exec(body);
  depths.set(this.lexer, depth + 1);
  try {
    return {
      type: "details",
      raw: src.slice(0, end?.to),
      isUnfolded: open !== undefined || end === undefined,
      summary: inline(this.lexer, summary?.[1]?.trim() ?? ""),
      tokens: this.lexer.blockTokens(body.slice(summary?.[0].length ?? 0).replace(/^\n+/, ""), []),
    };
  } finally {
    depths.set(this.lexer, depth);
  }
}

function inline(lexer: Lexer, text: string): Token[] {
  return text === "" ? [] : lexer.inline(text);
}

/** Start of the closing tag and end of its line; `undefined`: not there yet. */
function endOf(src: string, start: number): { from: number; to: number } | undefined {
  let open = 1;
  let fence: string | undefined;
  for (const found of src.slice(start).matchAll(MARKS)) {
    const [text, slash, marks, rest] = found;
    if (marks !== undefined) {
      if (fence === undefined) fence = marks;
      else if (marks[0] === fence[0] && marks.length >= fence.length && rest?.trim() === "")
        fence = undefined;
    } else if (fence === undefined) {
      open += slash === "/" ? -1 : 1;
      if (open > 0) continue;
      const from = start + found.index;
      const spaces = /^[ \t]*/.exec(src.slice(from + text.length))?.[0] ?? "";
      return { from, to: from + text.length + spaces.length };
    }
  }
  return undefined;
}
