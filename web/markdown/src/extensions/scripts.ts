// Subscript and superscript, `H~2~O` and `x^2^`. A single `~` never strikes through: models write `~5 km` and `~/folder`.

import type { Token, Tokens } from "marked";
import type { Script } from "../tokens.ts";

const SUB = /^~([\p{L}\p{N}+\-−=()]{1,16})~(?!~)/u;
const SUP = /^\^([\p{L}\p{N}+\-−=()]{1,16})\^(?!\^)/u;

/** After a letter or a number; elsewhere the mark is text. */
export function script(src: string, before: readonly Token[]): Script | Tokens.Text | undefined {
  const mark = src[0];
  if (mark !== "~" && mark !== "^") return undefined;
  if (mark === "~" && src[1] === "~") return undefined;
  const [raw, text] = (mark === "~" ? SUB : SUP).exec(src) ?? [];
  if (raw !== undefined && text !== undefined && /[\p{L}\p{N})\]]$/u.test(before.at(-1)?.raw ?? ""))
    return { type: mark === "~" ? "sub" : "sup", raw, text };
  return { type: "text", raw: mark, text: mark, escaped: false };
}
