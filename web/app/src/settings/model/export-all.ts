// All conversations of a person as one file. Framework-free.

import type { Throughline } from "@throughline/client";
import { Zip } from "./zip.ts";

/** The newest so many conversations are in a file. */
export const EXPORTED_CONVERSATIONS_MAX = 60_000;
const PAGE_ROWS = 200;

export interface Exported {
  file: Blob;
  count: number;
  /** There are more than fit. */
  isCut: boolean;
}

/** One conversation after the other, so that the server has other things to do as well. */
export async function exportAll(
  client: Throughline,
  progress: (count: number) => void,
  signal: AbortSignal,
): Promise<Exported> {
  const zip = new Zip();
  for (const archived of [false, true]) {
    let cursor: string | undefined;
    do {
      const query = { archived, limit: PAGE_ROWS, ...(cursor === undefined ? {} : { cursor }) };
      const page = await client.call("GET /v1/conversations", { query, signal });
      for (const { id } of page.items) {
        if (zip.entries >= EXPORTED_CONVERSATIONS_MAX)
          return { file: zip.file(), count: zip.entries, isCut: true };
        const text = await client.call("GET /v1/conversations/{conversation_id}/export", {
          path: { conversation_id: id },
          query: { format: "jsonl" },
          signal,
        });
        zip.add(`${id}.jsonl`, text);
        progress(zip.entries);
      }
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
  }
  return { file: zip.file(), count: zip.entries, isCut: false };
}
