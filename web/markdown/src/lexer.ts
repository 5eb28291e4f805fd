// marked as a lexer, with additional tokens and our rules of emphasis.

import { Lexer, type MarkedOptions, type Token, Tokenizer, type Tokens } from "marked";
import { INLINE_RULES } from "./cjk.ts";
import { details } from "./extensions/details.ts";
import { FOOTNOTE_LINE, footnote, footnoteRef } from "./extensions/footnotes.ts";
import { MATHS_LINE, MAY_BE_MATHS, mathsBlock, mathsIn, withoutMaths } from "./extensions/maths.ts";
import { script } from "./extensions/scripts.ts";
import { ALERTS, type AlertKind, type Quote } from "./tokens.ts";

/** Link definitions by normalized label. */
export type Links = Lexer["tokens"]["links"];

const ALERT = new RegExp(`^\\[!(${ALERTS.join("|")})\\][ \\t]*(?:\\n|$)`, "i");
/** An autolink ends at Chinese or Japanese punctuation. */
const SENTENCE_MARK =
  /[\u3000-\u303f\uff01-\uff0f\uff1a-\uff1f\uff3b-\uff3d\uff5b-\uff65\u2014\u2018-\u201d\u2026]/;

class OurTokenizer extends Tokenizer {
  /**
   * A definition needs its label on one line, and its title on one line. marked would include a fence or a heading in either, and would
   * only detect the end of the definition long after the fence has begun.
   */
  override def(src: string): Tokens.Def | undefined {
    const found = super.def(src);
    const name = found?.raw.slice(0, found.raw.indexOf("]:"));
    return name?.trim().includes("\n") || found?.title?.includes("\n") ? undefined : found;
  }

  override paragraph(src: string): Tokens.Paragraph | undefined {
    const found = super.paragraph(src);
    const cut = blockIn(src, found?.raw ?? "");
    return cut > 0 ? super.paragraph(src.slice(0, cut)) : found;
  }

  override lheading(src: string): Tokens.Heading | undefined {
    const found = super.lheading(src);
    return found !== undefined && blockIn(src, found.raw) > 0 ? undefined : found;
  }

  override blockquote(src: string): Quote | undefined {
    const found = super.blockquote(src);
    const alert = found && ALERT.exec(found.text);
    if (!alert) return found;
    const kind = (alert[1] ?? "").toLowerCase() as AlertKind;
    const { top } = this.lexer.state;
    this.lexer.state.top = true;
    const tokens = this.lexer.blockTokens(found.text.slice(alert[0].length), []);
    this.lexer.state.top = top;
    return { ...found, tokens, alert: kind };
  }

  override url(src: string): Tokens.Link | undefined {
    const found = super.url(src);
    const cut = found?.raw.search(SENTENCE_MARK) ?? -1;
    return cut > 0 ? super.url(src.slice(0, cut)) : found;
  }
}

/** Start of a footnote or a formula on a line of a paragraph; -1: none. */
function blockIn(src: string, raw: string): number {
  const footnote = raw.search(FOOTNOTE_LINE);
  for (let at = 0; ; ) {
    const next = raw.slice(at).search(MATHS_LINE);
    if (next === -1 || (footnote !== -1 && at + next > footnote)) return footnote;
    at += next;
    if (mathsBlock(src.slice(at + 1)) !== undefined) return at;
    at += 1;
  }
}

/** Keeps the source in which emphasis is matched. */
class OurLexer extends Lexer {
  #source = "";

  override inlineTokens(src: string, tokens?: Token[]): Token[] {
    const before = this.#source;
    this.#source = src;
    try {
      return super.inlineTokens(src, tokens);
    } finally {
      this.#source = before;
    }
  }

  emStrongMask(masked: string): string {
    return withoutMaths(this.#source, masked);
  }
}

const HOOKS = {
  emStrongMask(this: { lexer: OurLexer }, masked: string): string {
    return this.lexer.emStrongMask(masked);
  },
};

const EXTENSIONS = {
  block: [footnote, details],
  inline: [footnoteRef, script],
  startInline: [(src: string) => src.indexOf("^")],
  renderers: {},
  childTokens: {},
};
const WITH_MATHS = {
  ...EXTENSIONS,
  block: [mathsBlock, ...EXTENSIONS.block],
  inline: [mathsIn, ...EXTENSIONS.inline],
  startInline: [(src: string) => src.indexOf("$"), ...EXTENSIONS.startInline],
};

/** Lexes a text with normalized line ends, and collects its link definitions in addition to `known`. */
export function lex(text: string, known: Readonly<Links> = {}): { tokens: Token[]; links: Links } {
  // The lexer passes its rules to its tokenizer.
  const tokenizer = new OurTokenizer();
  // Extensions are skipped if their characters do not occur.
  const ways = MAY_BE_MATHS.test(text)
    ? { extensions: WITH_MATHS, hooks: HOOKS }
    : { extensions: EXTENSIONS };
  const options = { gfm: true, tokenizer, ...ways };
  const lexer = new OurLexer(options as unknown as MarkedOptions);
  tokenizer.rules = { ...tokenizer.rules, inline: INLINE_RULES };
  Object.assign(lexer.tokens.links, known);
  const tokens = lexer.lex(text);
  return { tokens: [...tokens], links: tokens.links };
}

/** Tokens of a whole text, parsed at once. */
export function read(text: string): readonly Token[] {
  return lex(text.replace(/\r\n?/g, "\n")).tokens;
}
