// Converts a file to a part of a message: a picture on the server, or its text. Loaded with the first file.

import type { PdfText, Throughline } from "@throughline/client";
import { language } from "../../../preferences.ts";
import { labelled } from "../../model/file-text.ts";
import { bytesOf, FileRefused } from "../attachments.ts";
import { shrunk } from "./image.ts";

/** Text of one file, in bytes: about 100,000 tokens, the context of many models. */
export const FILE_TEXT_BYTES_MAX = 400_000;

export type Found = { type: "image"; file_id: string } | { type: "text"; text: string };

/** Reads a file. Throws {@link FileRefused} or an error of the server. */
export async function read(
  file: File,
  name: string,
  client: Throughline,
  signal: AbortSignal,
): Promise<Found> {
  if (file.size === 0) throw new FileRefused("empty");
  // Models accept no SVG as a picture, but read it well as text.
  if (/^image\/(?!svg)/.test(file.type)) {
    const body = await shrunk(file);
    const { id } = await client.call("POST /v1/files", { body, query: { name }, signal });
    return { type: "image", file_id: id };
  }
  const head = new TextDecoder("latin1").decode(await file.slice(0, 1_024).arrayBuffer());
  if (file.type === "application/pdf" || head.includes("%PDF-")) {
    return { type: "text", text: await oneByOne(() => pdfText(file, name, client, signal)) };
  }
  // A file that cannot be attached is not read: videos have gigabytes.
  const text = file.size > FILE_TEXT_BYTES_MAX ? undefined : textIn(await file.arrayBuffer());
  if (text === undefined && textIn(await file.slice(0, 65_536).arrayBuffer(), "begun") === undefined) {
    throw new FileRefused("binary");
  }
  if (text === undefined || bytesOf(text) > FILE_TEXT_BYTES_MAX) throw new FileRefused("too_long");
  if (text.trim() === "") throw new FileRefused("empty");
  return { type: "text", text: labelled({ name, text }) };
}

/** Usual encodings of tables that are not UTF-8. */
const OLD_ENCODINGS = { en: "windows-1252", "zh-CN": "gb18030" } as const;
// biome-ignore lint/suspicious/noControlCharactersInRegex: no text has them
const CONTROL = /[\x00-\x08\x0e-\x1a\x1c-\x1f]/;

/** Text of a file; `undefined`: binary. `begun`: cut at the end, perhaps within a character. */
export function textIn(bytes: ArrayBuffer, extent: "whole" | "begun" = "whole"): string | undefined {
  const [first, second] = new Uint8Array(bytes.slice(0, 2));
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  const current = isUtf16 ? (first === 0xff ? "utf-16le" : "utf-16be") : "utf-8";
  for (const encoding of isUtf16 ? [current] : [current, OLD_ENCODINGS[language.get()]]) {
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: extent === "begun" });
      if (!CONTROL.test(text)) return text.replace(/\r\n?/g, "\n");
    } catch {
      // Try the next encoding.
    }
  }
  return undefined;
}

/** One PDF at a time: the server reads few at once. */
let before: Promise<unknown> = Promise.resolve();

function oneByOne<T>(act: () => Promise<T>): Promise<T> {
  const current = before.then(act, act);
  before = current.catch(() => undefined);
  return current;
}

/** Text of all pages that fit. */
async function pdfText(file: File, name: string, client: Throughline, signal: AbortSignal): Promise<string> {
  const { id } = await client.call("POST /v1/files", { body: file, query: { name }, signal });
  const path = { file_id: id };
  try {
    const pages: string[] = [];
    let [bytes, last, all] = [0, 0, 0];
    let from_page: number | undefined = 1;
    while (from_page !== undefined) {
      const query: { from_page: number } = { from_page };
      const part: PdfText = await client.call("GET /v1/files/{file_id}/text", { path, query, signal });
      all = part.pages;
      last = part.next_page == null ? all : part.next_page - 1;
      from_page = part.next_page ?? undefined;
      for (const page of part.texts) {
        const text = `[page ${page.page}]\n${page.text}`;
        bytes += bytesOf(text) + 2;
        if (bytes > FILE_TEXT_BYTES_MAX) {
          [last, from_page] = [page.page - 1, undefined];
          break;
        }
        pages.push(text);
      }
    }
    if (pages.length === 0) throw new FileRefused(last < all ? "too_long" : "no_text");
    const text = pages.join("\n\n");
    return labelled({ name, text, pages: last < all ? `1-${last} of ${all}` : `1-${all}` });
  } finally {
    // The text is in the message; the file itself is not needed any more.
    client.call("DELETE /v1/files/{file_id}", { path }).catch(() => undefined);
  }
}
