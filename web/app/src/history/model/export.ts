// The filtered calls as a file. Framework-free.

import type { Throughline } from "@throughline/client";
import { type Filter, queryOf } from "./filter.ts";

export type Format = "jsonl" | "csv";

const TYPES: Readonly<Record<Format, string>> = { jsonl: "application/jsonl", csv: "text/csv" };

/** Requests the file, and downloads it. */
export async function exportCalls(
  client: Throughline,
  filter: Filter,
  format: Format,
  now: number,
): Promise<void> {
  const query = { ...queryOf(filter, now), format };
  const text = await client.call("GET /v1/history/export", { query });
  const url = URL.createObjectURL(new Blob([text], { type: TYPES[format] }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName(format, now);
  link.click();
  // The browser has read the blob by then; a started download keeps its data.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Name of the file, in local time: `throughline-calls-20261122-140211.csv`. */
export function fileName(format: Format, now: number): string {
  const at = new Date(now);
  const two = (n: number): string => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
  const time = `${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}`;
  return `throughline-calls-${day}-${time}.${format}`;
}
