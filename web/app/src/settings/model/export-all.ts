// All conversations of a user as one file. Framework-free.

import type { Throughline } from "@throughline/client";
import { Zip } from "./zip.ts";

/** Maximum number of exported conversations, newest first. */
export const EXPORTED_CONVERSATIONS_MAX = 60_000;
const PAGE_ROWS = 200;

export interface Exported {
  file: Blob;
  count: number;
  /** The limit was exceeded. */
  isCut: boolean;
}

/** Exports one conversation after the other, to limit the load of the server. */
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
