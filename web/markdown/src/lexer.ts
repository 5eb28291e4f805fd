// marked as a lexer: its tokens, our rules of emphasis.

import { Lexer, type Token, Tokenizer, type Tokens } from "marked";
import { INLINE_RULES } from "./cjk.ts";

/** Addresses of reference links, by their normalised names. */
export type Links = Lexer["tokens"]["links"];

/**
 * A definition has its name on one line, and its title on one line. marked would take a fence or a heading into either,
 * and would only know when the definition ends, long after the fence has begun.
 */
class OneLineDefinitions extends Tokenizer {
  override def(src: string): Tokens.Def | undefined {
    const found = super.def(src);
    const name = found?.raw.slice(0, found.raw.indexOf("]:"));
    return name?.trim().includes("\n") || found?.title?.includes("\n") ? undefined : found;
  }
}

/** The tokens of a text whose line ends are `\n`, and the addresses that it was told or has. */
export function lex(text: string, known: Readonly<Links> = {}): { tokens: Token[]; links: Links } {
  // The lexer gives its rules to the tokenizer that it is made with.
  const tokenizer = new OneLineDefinitions();
  const lexer = new Lexer({ gfm: true, tokenizer });
  tokenizer.rules = { ...tokenizer.rules, inline: INLINE_RULES };
  Object.assign(lexer.tokens.links, known);
  const tokens = lexer.lex(text);
  return { tokens: [...tokens], links: tokens.links };
}

/** The tokens of a whole text, read at once. */
export function read(text: string): readonly Token[] {
  return lex(text.replace(/\r\n?/g, "\n")).tokens;
}
