// Tokens that marked does not have.

import type { Token, Tokens } from "marked";

export const ALERTS = ["note", "tip", "important", "warning", "caution"] as const;
export type AlertKind = (typeof ALERTS)[number];

/** A quotation; with `alert`, its first line was `[!NOTE]` or alike and is not part of its tokens. */
export interface Quote extends Tokens.Blockquote {
  alert?: AlertKind;
}

/** `[^1]: text`. */
export interface Footnote {
  type: "footnote";
  raw: string;
  label: string;
  tokens: Token[];
}

/** `[^1]` in a text. */
export interface FootnoteRef {
  type: "footnote_ref";
  raw: string;
  label: string;
}

/** `H~2~O`, `x^2^`. */
export interface Script {
  type: "sub" | "sup";
  raw: string;
  text: string;
}

/** `<details>` with Markdown inside. */
export interface Details {
  type: "details";
  raw: string;
  /** Starts unfolded: by its attribute, or because its end is missing. */
  isUnfolded: boolean;
  summary: Token[];
  tokens: Token[];
}

/** A formula in TeX. */
export interface Maths {
  type: "maths";
  raw: string;
  text: string;
  /** On lines of its own. */
  isDisplay: boolean;
  /** Its last mark has come. */
  isClosed: boolean;
}

export type OwnToken = Maths | Footnote | FootnoteRef | Script | Details;
