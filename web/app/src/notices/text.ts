// Text of notifications. Systems show them outside of the page, so nothing in them may be invisible or reverse the text around it.
// Framework-free.

import { exact } from "@throughline/visible";

/** Maximum length of a line, in characters; systems cut at about the same length. */
const LINE_CHARS_MAX = 120;
/** Characters that are read for a line. */
const READ_CHARS_MAX = 4 * LINE_CHARS_MAX;

/** An untrusted text as one line without invisible characters. */
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

/** Joins lines, each with its own direction, so that right-to-left text affects no other line. */
export function linesOf(...texts: readonly (string | undefined)[]): string {
  return texts
    .map((text) => lineOf(text ?? ""))
    .filter((line) => line !== "")
    .join("\n");
}
