// Emphasis next to Chinese, Japanese and Korean. CommonMark requires a space outside of `**50%**的` and `**注意：**后`, and these
// scripts have none: their characters, including full-width punctuation, never keep `*` or `~` from opening or closing here.

import { Lexer } from "marked";

const CJK =
  "[\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Hang}\\p{scx=Bopo}" +
  // Punctuation, but not the space U+3000; full-width forms; quotes, dashes and dots that Chinese shares with others.
  "\\u3001-\\u303f\\uff01-\\uffef\\u2014\\u2018-\\u201d\\u2026]";
const PUNCTUATION = `(?!~|${CJK})[\\p{P}\\p{S}]`;
const OTHER = `(?!${CJK})(?:[^\\s\\p{P}\\p{S}]|~)`;
const LETTER = `(?:${OTHER}|${CJK})`;

/** marked's inline rules, except for `*` and `~`. */
export const INLINE_RULES: typeof Lexer.rules.inline.gfm = {
  ...Lexer.rules.inline.gfm,
  punctuation: new RegExp(`^((?![*_])(?:[\\s\\p{P}\\p{S}]|${CJK}))`, "u"),
  emStrongLDelim: new RegExp(
    `^(?:\\*+(?:((?!\\*)${PUNCTUATION})|([^\\s*]))?)|^_+(?:((?!_)${PUNCTUATION})|([^\\s_]))?`,
    "u",
  ),
  emStrongRDelimAst: closing("\\*", "\\*+", "^[^_*]*?__[^_*]*?\\*[^_*]*?(?=__)|"),
  delLDelim: new RegExp(`^~~?(?:((?!~)${PUNCTUATION})|[^\\s~])`, "u"),
  delRDelim: closing("~", "~~?", ""),
};

/** The next run of marks, in the group that marked expects: closes (1, 2), opens (3, 4), does either (5, 6). */
function closing(mark: string, run: string, skipped: string): RegExp {
  const punctuation = `(?!${mark})${PUNCTUATION}`;
  const letter = mark === "~" ? `(?!~)${LETTER}` : LETTER;
  const ways = [
    `[^${mark}]+(?=[^${mark}])`,
    `${punctuation}(${run})(?=\\s|$)`,
    `${letter}(${run})(?!${mark})(?=\\s|${PUNCTUATION}|$)`,
    `(?:\\s(?=${run}${letter})|${punctuation}(?=${run}(?!${mark})${OTHER}))(${run})`,
    `\\s(${run})(?!${mark})(?=${PUNCTUATION})`,
    `${punctuation}(${run})(?!${mark})(?=${PUNCTUATION}|${CJK})`,
    `${letter}(${run})(?=${letter})`,
  ];
  return new RegExp(skipped + ways.join("|"), "gu");
}
