// The open end of a growing text: whether a piece only appends characters to its last line, so that nothing is parsed.

import type { MarkedToken, Token, Tokens } from "marked";
import { isFenceClosed } from "./fence.ts";

/** Characters without a meaning in inline Markdown. */
const PLAIN =
  "(?!\\p{DI})[\\p{L}\\p{N}\\p{M}]|[,.;:!?'\"()%\\u3001\\u3002\\u300a-\\u300d\\u2014\\u2018-\\u201d\\u2026\\uff01\\uff08\\uff09\\uff0c\\uff1a\\uff1b\\uff1f]";
const PLAIN_PIECE = new RegExp(`^(?: |${PLAIN})+$`, "u");
/** A word of such characters cannot become a tag, an entity or a link. */
const PLAIN_WORD = new RegExp(`^(?:${PLAIN})+$`, "u");
/** Start of an autolink. */
const ADDRESS = /www\./i;
/** A line that begins like this is text: it never becomes an item, a rule, a table, a definition or a heading. */
const LINE_OF_TEXT = /^(?:\*{1,3}|_{1,3}|~~|`)?\p{L}/u;
/** Marks that an otherwise plain character may close. */
const MAY_BEGIN = /[[<$\\&~^]/;
const LETTER = /\p{L}/u;
/** A piece that cannot close a fence. No character is in two of these classes, so matching takes linear time. */
const CODE_PIECE = /^(?:[\n\t -_a-}]|(?![\0-\x7f]|\p{DI})[\p{L}\p{N}\p{M}])+$/u;

export class OpenEnd {
  /** Shown text of the last text token. */
  readonly shown: string;
  readonly #kind: "code" | "text" | "trimmed text";
  /** End of the text: the current word, or the last character of code. */
  #last: string;
  /** Trailing space that is not shown until something follows. */
  #held: string;

  private constructor(shown: string, kind: "code" | "text" | "trimmed text", last: string, held: string) {
    this.shown = shown;
    this.#kind = kind;
    this.#last = last;
    this.#held = held;
  }

  /** The open end of these tokens of a text. `undefined`: more text must be parsed. */
  static of(tokens: readonly Token[], text: string): OpenEnd | undefined {
    const last = tokens.at(-1) as MarkedToken | undefined;
    if (last?.type === "code") return OpenEnd.#ofCode(last, text);
    const line = last && lineAtEnd(last);
    if (line === undefined) return undefined;
    const { shown } = line;
    const spaces = / *$/.exec(text)?.[0] ?? "";
    const words = text.slice(0, text.length - spaces.length);
    const letters = shown.trimEnd();
    // Otherwise the text ends in a line end, or in marks that are not shown.
    if (!LETTER.test(letters) || !words.endsWith(letters)) return undefined;
    if (shown !== (line.isTrimmed ? letters : letters + spaces)) return undefined;
    const word = /\S*$/.exec(words)?.[0] ?? "";
    if (!PLAIN_WORD.test(word) || ADDRESS.test(word)) return undefined;
    const kind = line.isTrimmed ? "trimmed text" : "text";
    return new OpenEnd(shown, kind, spaces === "" ? word : "", line.isTrimmed ? spaces : "");
  }

  static #ofCode({ raw, text: shown }: Tokens.Code, text: string): OpenEnd | undefined {
    if (!/^[`~]/.test(raw) || shown === "" || isFenceClosed(raw)) return undefined;
    const held = text.endsWith(shown) ? "" : "\n";
    if (!text.endsWith(shown + held)) return undefined;
    return new OpenEnd(shown, "code", shown.slice(-1), held);
  }

  /** Text to append for this piece; `undefined`: it must be parsed. */
  grown(piece: string): string | undefined {
    const all = this.#held + piece;
    if (this.#kind === "code") {
      if (!CODE_PIECE.test(piece)) return undefined;
      // Like the lexer: a single line end belongs to the closing fence.
      this.#held = all.endsWith("\n") && !(this.#last + all).endsWith("\n\n") ? "\n" : "";
      const added = all.slice(0, all.length - this.#held.length);
      this.#last = added.slice(-1) || this.#last;
      return added;
    }
    if (!PLAIN_PIECE.test(piece) || ADDRESS.test(this.#last + piece)) return undefined;
    this.#last = (this.#last + piece).replace(/^.* /, "");
    if (this.#kind === "text") return piece;
    const added = all.trimEnd();
    this.#held = all.slice(added.length);
    return added;
  }
}

interface LineAtEnd {
  shown: string;
  /** Trailing space is not shown. */
  isTrimmed: boolean;
}

/** Last line of a block, if more characters extend it. */
function lineAtEnd(token: MarkedToken, isInItem = false): LineAtEnd | undefined {
  switch (token.type) {
    case "paragraph":
    case "text": {
      const line = token.raw.slice(token.raw.trimEnd().lastIndexOf("\n") + 1);
      if (!LINE_OF_TEXT.test(line) || token.tokens === undefined) return undefined;
      return textAtEnd(token.tokens, isInItem);
    }
    case "heading":
      return token.raw.trimStart().startsWith("#") ? textAtEnd(token.tokens, true) : undefined;
    case "list":
      return within(token.items.at(-1)?.tokens, true);
    case "blockquote":
      return within(token.tokens, isInItem);
    default:
      return undefined;
  }
}

function within(tokens: readonly Token[] | undefined, isInItem: boolean): LineAtEnd | undefined {
  const last = tokens?.at(-1) as MarkedToken | undefined;
  return last && lineAtEnd(last, isInItem);
}

function textAtEnd(tokens: readonly Token[] | undefined, isTrimmed: boolean): LineAtEnd | undefined {
  const last = tokens?.at(-1) as MarkedToken | undefined;
  return last?.type === "text" && last.tokens === undefined && last.raw === last.text && !mayEnd(tokens)
    ? { shown: last.text, isTrimmed }
    : undefined;
}

/** True if a plain character may close an open construct: in `[a](https://b "c")` the last two are plain. */
function mayEnd(tokens: readonly Token[] | undefined): boolean {
  return (tokens as readonly MarkedToken[] | undefined)?.some(isOpen) === true;
}

function isOpen(token: MarkedToken): boolean {
  switch (token.type) {
    case "text":
      return MAY_BEGIN.test(token.raw);
    case "strong":
    case "em":
    case "del":
      return mayEnd(token.tokens);
    default:
      return false;
  }
}
