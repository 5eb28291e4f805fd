// The direction of a text, by its first letter: a browser does so for one element, and a list is several.

const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT =
  /[\p{sc=Hebr}\p{sc=Arab}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Samr}\p{sc=Mand}\p{sc=Adlm}]/u;
/** Code, addresses and tags run from the left in any text: their letters say nothing of it. */
const NO_WORDS = /(`+)[\s\S]*?\1|(?:https?:\/\/|www\.)\S*|\]\([^)]*\)|<[^>]*>/g;

/** Of Markdown; where there is nothing but code and addresses, from the left. */
export function directionOf(text: string): "rtl" | "ltr" {
  const letter = LETTER.exec(text.replace(NO_WORDS, " "))?.[0] ?? "";
  return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
}
