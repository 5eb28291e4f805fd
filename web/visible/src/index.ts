// Text without invisible characters, like `crates/wire/src/display_escape.rs`, tested with the same vectors.

/** Control characters and others that are invisible or change the position of other characters. */
const HIDDEN =
  "[\\p{DI}\\p{Cs}\\p{Zl}\\p{Zp}\\0-\\x08\\v\\f\\x0e-\\x1f\\x7f-\\x9f\\u2800\\ufff9-\\ufffb\\u{13430}-\\u{1343f}\\u{1d159}]|\\r(?!\\n)";
/** Unicode blocks of emoji. */
const PICTOGRAPH =
  "[©®‼⁉™ℹ〰〽㊗㊙Ⓜ\\u2190-\\u21ff\\u2300-\\u23ff\\u25a0-\\u27bf\\u2900-\\u297f\\u2b00-\\u2bff\\u{1f000}-\\u{1faff}]";
const OF_EMOJI = `(?<=${PICTOGRAPH})[\\ufe0e\\ufe0f]|(?<=[\\d#*])\\ufe0f\\u20e3|(?<=${PICTOGRAPH}\\ufe0f?)\\u200d(?=${PICTOGRAPH})`;
/** A letter of a script with joining letters. */
const JOINING =
  "(?!\\p{DI})[\\u0600-\\u109f\\u1780-\\u18af\\ua800-\\uabff\\ufb50-\\ufdff\\ufe70-\\ufefc\\u{11000}-\\u{11fff}]";
const IDEOGRAPH = "[\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}]";
const OF_LETTERS = `(?<=${JOINING})[\\u200c\\u200d]|(?<=${JOINING}|${IDEOGRAPH})[\\u180b-\\u180f\\ufe00-\\ufe0f]|(?<=${IDEOGRAPH})[\\u{e0100}-\\u{e01ef}]`;

/** Joiners and selectors of emoji. */
const GLUE = /[\ufe0e\ufe0f\u200d]/g;
const VALUE = new RegExp(`((?:(?!${OF_EMOJI})(?:${HIDDEN}))+)`, "u");
const PROSE = new RegExp(`((?:(?!${OF_EMOJI}|${OF_LETTERS})(?:${HIDDEN}))+)`, "u");

/**
 * Splits a text into visible and hidden parts, alternately; hidden ones as `\u202e`. Prose keeps what its letters need, a value only
 * the joiners of emoji.
 */
export function parts(text: string, isProse: boolean): string[] {
  // Most texts, and the largest ones.
  if (!/[^\t\n -~]/.test(text)) return [text];
  return text.split(isProse ? PROSE : VALUE).map((part, at) => (at % 2 ? spelled(part) : part));
}

/** Escapes hidden characters in a value, a name or an output. JSON stays the same value. */
export function visible(text: string): string {
  return parts(text, false).join("");
}

/** Escapes the joiners of emoji: `→` and `→\ufe0f` look the same. */
export function spellGlue(text: string): string {
  return text.replace(GLUE, spelled);
}

/** Like `visible`, for texts that a person decides by: joiners of emoji are escaped, too. */
export function exact(text: string): string {
  return visible(spellGlue(text));
}

function spelled(hidden: string): string {
  return hidden.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
