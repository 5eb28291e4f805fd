import { csvField } from "@throughline/json";
// Tokens without their marks: as text, and a table as CSV.

import type { Token, Tokens } from "marked";

export function plainText(tokens: readonly Token[]): string {
  return tokens.map(plain).join("");
}

function plain(token: Token): string {
  if (token.type === "br" || (token.type === "html" && /^<br\s*\/?>$/i.test(token.raw.trim()))) return "\n";
  if ("tokens" in token && token.tokens !== undefined) return plainText(token.tokens);
  if (token.type === "html" || token.type === "footnote_ref") return "";
  return "text" in token && typeof token.text === "string" ? token.text : token.raw;
}

/** Table as CSV for spreadsheets. */
export function csvOf({ header, rows }: Tokens.Table): string {
  const line = (cells: readonly Tokens.TableCell[]) =>
    cells.map(({ tokens }) => csvField(plainText(tokens).trim())).join(",");
  return [header, ...rows].map(line).join("\r\n");
}
