// Footnotes as GitHub has them: `[^1]` in a text, and `[^1]: text` on a line of its own with indented lines below.

import type { Lexer } from "marked";
import type { Footnote, FootnoteRef } from "../tokens.ts";

/** Maximum length of a label. */
const LABEL_CHARS_MAX = 64;
const LABEL = `\\[\\^([^\\]\\s^[]{1,${LABEL_CHARS_MAX}})\\]`;
const DEFINITION = new RegExp(
  `^ {0,3}${LABEL}:[ \\t]*([^\\n]*(?:\\n(?:[ \\t]*\\n)*(?: {2,}|\\t)[ \\t]*[^\\s][^\\n]*)*)`,
);
const REFERENCE = new RegExp(`^${LABEL}(?![(:[])`);
/** A footnote that ends a paragraph. */
export const FOOTNOTE_LINE = new RegExp(`\\n(?= {0,3}${LABEL}:)`);

export function footnote(this: { lexer: Lexer }, src: string): Footnote | undefined {
  const found = DEFINITION.exec(src);
  const [raw, label, body] = found ?? [];
  if (raw === undefined || label === undefined || body === undefined) return undefined;
  const text = body.replace(/\n(?: {2,4}|\t)/g, "\n");
  return { type: "footnote", raw, label, tokens: this.lexer.blockTokens(text, []) };
}

export function footnoteRef(src: string): FootnoteRef | undefined {
  const [raw, label] = REFERENCE.exec(src) ?? [];
  return raw === undefined || label === undefined ? undefined : { type: "footnote_ref", raw, label };
}
