// Case-insensitive search in every script. The server's `catalog/fold.rs` folds the same.

/** Letters with two cases, and digits of full width. */
const FORMS = /[\p{Changes_When_Casemapped}\uff10-\uff19]/gu;
/** Full-width letters and digits, as in Japanese and Chinese texts. */
const FULL_WIDTH = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/;
const ASCII = /^[\0-\x7f]*$/;

/**
 * Normalizes a text so that all of its forms match: `toLowerCase` alone leaves `ς` next to `σ` depending on the context, and makes two
 * characters of `İ`. Offsets stay the same.
 */
export function folded(text: string): string {
  return ASCII.test(text) ? text.toLowerCase() : text.replace(FORMS, fold);
}

function fold(letter: string): string {
  const narrow = FULL_WIDTH.test(letter) ? String.fromCharCode(letter.charCodeAt(0) - 0xfee0) : letter;
  // Via the capital: it is one for all of `σ`, `ς` and `Σ`. That of `ß` is two letters.
  const capital = narrow.toUpperCase();
  const [small = letter] = (isOne(capital) ? capital : narrow).toLowerCase();
  return small;
}

function isOne(text: string): boolean {
  return text.length === ((text.codePointAt(0) ?? 0) > 0xffff ? 2 : 1);
}
