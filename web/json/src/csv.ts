// Rows as CSV.

import { textOf } from "./large.ts";

/** Escapes a field. */
export function csvField(text: string): string {
  // Prevents spreadsheets from running it as a formula.
  const inert = /^[=@\t\r]|^[+-](?![\d.,\s]*%?$)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

/** A table with its header. */
export function csvOfRows(
  columns: readonly string[],
  rows: readonly Readonly<Record<string, unknown>>[],
): string {
  const lines = rows.map((row) => columns.map((column) => (row[column] == null ? "" : textOf(row[column]))));
  return [columns, ...lines].map((cells) => cells.map(csvField).join(",")).join("\r\n");
}
