// The open end of a text that grows: whether a piece only adds letters to its last line, so that nothing is read again.

import type { MarkedToken, Token, Tokens } from "marked";
import { isFenceClosed } from "./fence.ts";

/** What means nothing in Markdown within a line, nor within a word of such characters. */
const PLAIN =
  "(?!\\p{DI})[\\p{L}\\p{N}\\p{M}]|[,.;:!?'\"()%\\u3001\\u3002\\u300a-\\u300d\\u2014\\u2018-\\u201d\\u2026\\uff01\\uff08\\uff09\\uff0c\\uff1a\\uff1b\\uff1f]";
const PLAIN_PIECE = new RegExp(`^(?: |${PLAIN})+$`, "u");
/** With anything else in it, a word could become a tag, an entity, a link or its mark. */
const PLAIN_WORD = new RegExp(`^(?:${PLAIN})+$`, "u");
/** The beginning of an address. */
const ADDRESS = /www\./i;
/** A line that begins so is text: it never becomes an item, a rule, a table, a definition or a heading. */
const LINE_OF_TEXT = /^(?:\*{1,3}|_{1,3}|~~|`)?\p{L}/u;
/** What one of these has begun, a plain character may end. */
const MAY_BEGIN = /[[<$\\&~^]/;
const LETTER = /\p{L}/u;
/** Nothing of it ends a fence. No character is in two of these classes: a piece of any length is looked at once. */
const CODE_PIECE = /^(?:[\n\t -_a-}]|(?![\0-\x7f]|\p{DI})[\p{L}\p{N}\p{M}])+$/u;

export class OpenEnd {
  /** The text that grows: all of the last text that is shown. */
  readonly shown: string;
  readonly #kind: "code" | "text" | "trimmed text";
  /** The end of the text: the word that goes on, or the last character of code. */
  #last: string;
  /** Space that has come and is not shown until something follows. */
  #held: string;

  private constructor(shown: string, kind: "code" | "text" | "trimmed text", last: string, held: string) {
    this.shown = shown;
    this.#kind = kind;
    this.#last = last;
    this.#held = held;
  }

  /** `tokens` are those of all of this text. `undefined`: whatever comes is to be read. */
  static of(tokens: readonly Token[], text: string): OpenEnd | undefined {
    const last = tokens.at(-1) as MarkedToken | undefined;
    if (last?.type === "code") return OpenEnd.#ofCode(last, text);
    const line = last && lineAtEnd(last);
    if (line === undefined) return undefined;
    const { shown } = line;
    const spaces = / *$/.exec(text)?.[0] ?? "";
    const words = text.slice(0, text.length - spaces.length);
    const letters = shown.trimEnd();
    // Else the text ends in a line end, or in marks that are not shown.
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

  /** What is shown more with this piece; `undefined`: it is to be read. */
  grown(piece: string): string | undefined {
    const all = this.#held + piece;
    if (this.#kind === "code") {
      if (!CODE_PIECE.test(piece)) return undefined;
      // As the lexer does: a single line end belongs to the fence that is to come.
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
  /** Space at its end is not shown. */
  isTrimmed: boolean;
}

/** The text at the end of a block, if more letters are more of it. */
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

/** Whether anything in a line has begun that a plain character may end: of `[a](https://b "c")` the last two are plain. */
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
