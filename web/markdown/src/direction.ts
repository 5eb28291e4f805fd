// The direction of a text, by its first letter: a browser does so for one element, and a list is several.

const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT =
  /[\p{sc=Hebr}\p{sc=Arab}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Samr}\p{sc=Mand}\p{sc=Adlm}]/u;

export function directionOf(text: string): "rtl" | "ltr" {
  const letter = LETTER.exec(text)?.[0] ?? "";
  return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
}
