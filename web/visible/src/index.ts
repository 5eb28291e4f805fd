// Text for people, in which nothing is invisible: as `crates/wire/src/display_escape.rs`, by the same vectors.

/** Control characters and whatever else is not seen or changes where other characters are seen. */
const HIDDEN =
  "[\\p{DI}\\p{Cs}\\p{Zl}\\p{Zp}\\0-\\x08\\v\\f\\x0e-\\x1f\\x7f-\\x9f\\u2800\\ufff9-\\ufffb\\u{13430}-\\u{1343f}\\u{1d159}]|\\r(?!\\n)";
/** The blocks that emoji are in. */
const PICTOGRAPH =
  "[©®‼⁉™ℹ〰〽㊗㊙Ⓜ\\u2190-\\u21ff\\u2300-\\u23ff\\u25a0-\\u27bf\\u2900-\\u297f\\u2b00-\\u2bff\\u{1f000}-\\u{1faff}]";
const OF_EMOJI = `(?<=${PICTOGRAPH})[\\ufe0e\\ufe0f]|(?<=[\\d#*])\\ufe0f\\u20e3|(?<=${PICTOGRAPH}\\ufe0f?)\\u200d(?=${PICTOGRAPH})`;
/** A letter of a script whose letters join. */
const JOINING =
  "(?!\\p{DI})[\\u0600-\\u109f\\u1780-\\u18af\\ua800-\\uabff\\ufb50-\\ufdff\\ufe70-\\ufefc\\u{11000}-\\u{11fff}]";
const IDEOGRAPH = "[\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}]";
const OF_LETTERS = `(?<=${JOINING})[\\u200c\\u200d]|(?<=${JOINING}|${IDEOGRAPH})[\\u180b-\\u180f\\ufe00-\\ufe0f]|(?<=${IDEOGRAPH})[\\u{e0100}-\\u{e01ef}]`;

/** What emoji are made of besides pictures. */
const GLUE = /[\ufe0e\ufe0f\u200d]/g;
const VALUE = new RegExp(`((?:(?!${OF_EMOJI})(?:${HIDDEN}))+)`, "u");
const PROSE = new RegExp(`((?:(?!${OF_EMOJI}|${OF_LETTERS})(?:${HIDDEN}))+)`, "u");

/**
 * What is seen of a text and what is not, in turns; the latter as `\u202e`. In prose stays what letters need, in a value nothing
 * but what emoji are made of.
 */
export function parts(text: string, isProse: boolean): string[] {
  // Most texts, and the largest.
  if (!/[^\t\n -~]/.test(text)) return [text];
  return text.split(isProse ? PROSE : VALUE).map((part, at) => (at % 2 ? spelled(part) : part));
}

/** A value, a name, an output as people are shown it. JSON stays the same value. */
export function visible(text: string): string {
  return parts(text, false).join("");
}

/** Spells out what emoji are made of besides pictures: `→` and `→\ufe0f` look the same. */
export function spellGlue(text: string): string {
  return text.replace(GLUE, spelled);
}

/** What a person decides by: as `visible`, and nothing hidden stays, not even in an emoji. */
export function exact(text: string): string {
  return visible(spellGlue(text));
}

function spelled(hidden: string): string {
  return hidden.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
