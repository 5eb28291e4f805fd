// What a notification says. A system shows it outside of the page, so nothing in it may be invisible or turn what stands around it.
// Framework-free.

import { exact } from "@throughline/visible";

/** A line of a notification is no longer, in characters; systems cut it at about as many. */
const LINE_CHARS_MAX = 120;
/** So much of a text is looked at for a line. */
const READ_CHARS_MAX = 4 * LINE_CHARS_MAX;

/** A text of anybody as one line in which everything is seen. */
export function lineOf(text: string): string {
  const line = exact(
    text
      .slice(0, READ_CHARS_MAX)
      .replace(/[\s\u2028\u2029]+/gu, " ")
      .trim(),
  );
  const characters = Array.from(line);
  return characters.length <= LINE_CHARS_MAX ? line : `${characters.slice(0, LINE_CHARS_MAX - 1).join("")}…`;
}

/** Lines below each other: each decides its own direction, so a letter from the right turns no other line. */
export function linesOf(...texts: readonly (string | undefined)[]): string {
  return texts
    .map((text) => lineOf(text ?? ""))
    .filter((line) => line !== "")
    .join("\n");
}
