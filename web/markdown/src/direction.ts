// Direction of a text by its first letter: browsers determine it for one element, and a list is several.

const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT =
  /[\p{sc=Hebr}\p{sc=Arab}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Samr}\p{sc=Mand}\p{sc=Adlm}]/u;
/** Code, addresses and tags are left-to-right in any text, so they are ignored. */
const NO_WORDS = /(`+)[\s\S]*?\1|(?:https?:\/\/|www\.)\S*|\]\([^)]*\)|<[^>]*>/g;

/** Direction of Markdown; left-to-right if there is only code and addresses. */
export function directionOf(text: string): "rtl" | "ltr" {
  const letter = LETTER.exec(text.replace(NO_WORDS, " "))?.[0] ?? "";
  return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
}
