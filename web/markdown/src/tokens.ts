// Tokens in addition to those of marked.

import type { Token, Tokens } from "marked";

export const ALERTS = ["note", "tip", "important", "warning", "caution"] as const;
export type AlertKind = (typeof ALERTS)[number];

/** A blockquote; with `alert`, its first line was `[!NOTE]` or similar and is not part of its tokens. */
export interface Quote extends Tokens.Blockquote {
  alert?: AlertKind;
}

/** Definition of a footnote, `[^1]: text`. */
export interface Footnote {
  type: "footnote";
  raw: string;
  label: string;
  tokens: Token[];
}

/** Reference to a footnote, `[^1]`. */
export interface FootnoteRef {
  type: "footnote_ref";
  raw: string;
  label: string;
}

/** Subscript or superscript, `H~2~O`, `x^2^`. */
export interface Script {
  type: "sub" | "sup";
  raw: string;
  text: string;
}

/** `<details>` with Markdown inside. */
export interface Details {
  type: "details";
  raw: string;
  /** Open by default: by its attribute, or because its end is missing. */
  isUnfolded: boolean;
  summary: Token[];
  tokens: Token[];
}

/** A formula in TeX. */
export interface Maths {
  type: "maths";
  raw: string;
  text: string;
  /** A display formula. */
  isDisplay: boolean;
  /** Closed by its last delimiter. */
  isClosed: boolean;
}

export type OwnToken = Maths | Footnote | FootnoteRef | Script | Details;
