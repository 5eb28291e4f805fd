// Letters in every script, whatever their case: what people search in. The server's `catalog/fold.rs` folds the same.

/** Letters with two cases, and digits of full width. */
const FORMS = /[\p{Changes_When_Casemapped}\uff10-\uff19]/gu;
/** Letters and digits as Japanese and Chinese write them among their own. */
const FULL_WIDTH = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/;
const ASCII = /^[\0-\x7f]*$/;

/**
 * A text by which all of its forms are found: `toLowerCase` alone leaves `ς` beside `σ`, by what stands around it, and makes two
 * characters of `İ`. A place in it is the same place in the text.
 */
export function folded(text: string): string {
  return ASCII.test(text) ? text.toLowerCase() : text.replace(FORMS, fold);
}

function fold(letter: string): string {
  const narrow = FULL_WIDTH.test(letter) ? String.fromCharCode(letter.charCodeAt(0) - 0xfee0) : letter;
  // By way of the capital: it is one for all of `σ`, `ς` and `Σ`. That of `ß` is two letters.
  const capital = narrow.toUpperCase();
  const [small = letter] = (isOne(capital) ? capital : narrow).toLowerCase();
  return small;
}

function isOne(text: string): boolean {
  return text.length === ((text.codePointAt(0) ?? 0) > 0xffff ? 2 : 1);
}
