// Attachments of a message.

import { Throughline } from "@throughline/client";
import fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  Attachments,
  FILES_MAX,
  FILES_TEXT_BYTES_MAX,
  type Refusal,
} from "../src/chat/composer/attachments.ts";
import { fitting, IMAGE_SIDE_PX_MAX } from "../src/chat/composer/files/image.ts";
import { FILE_TEXT_BYTES_MAX, textIn } from "../src/chat/composer/files/read.ts";
import { filesIn, wordsIn } from "../src/chat/model/entry.ts";
import { fileIn, labelled } from "../src/chat/model/file-text.ts";
import { language } from "../src/preferences.ts";

beforeEach(() => {
  URL.createObjectURL = () => "blob:1";
  URL.revokeObjectURL = vi.fn();
});

describe("file as text", () => {
  test("file survives its labels with any content", () => {
    const name = fc.string({ unit: "grapheme" }).map((name) => name.replace(/\s+/g, " "));
    const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("</file>", "</file>\n</file_>"));
    fc.assert(
      fc.property(name, text, fc.option(name, { nil: undefined }), (name, text, pages) => {
        expect(fileIn(labelled({ name, text, pages }))).toEqual({ name, text, pages });
      }),
    );
  });

  test("file is distinguished from typed text", () => {
    const part = [
      { type: "text", text: "What is in it?" },
      { type: "text", text: labelled({ name: "a.csv", text: "1,2" }) },
      { type: "image", file_id: "file_1" },
    ];
    expect(wordsIn(part)).toBe("What is in it?");
    expect(filesIn(part)).toEqual(part.slice(1));
    expect(fileIn('<file name="a">')).toBeUndefined();
    expect(fileIn('See <file name="a">\nb\n</file>')).toBeUndefined();
  });
});

describe("text of bytes", () => {
  const bytes = (...values: number[]) => new Uint8Array(values).buffer;
  test.each<[string, ArrayBuffer, string | undefined]>([
    ["UTF-8", new TextEncoder().encode("é\r\n你").buffer, "é\n你"],
    ["UTF-16", bytes(0xff, 0xfe, 0x61, 0, 0x60, 0x4f), "a你"],
    ["an old table", bytes(0x63, 0x61, 0x66, 0xe9), "café"],
    ["a program", bytes(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0), undefined],
    ["a zip", bytes(0x50, 0x4b, 3, 4, 20, 0), undefined],
  ])("%s", (_, content, text) => expect(textIn(content)).toBe(text));

  test("bytes are decoded with the usual encoding of the locale", () => {
    language.set("zh-CN");
    expect(textIn(bytes(0xc4, 0xe3))).toBe("你");
    language.set("en");
  });

  test("bytes cut within a character are decoded", () => {
    const [first, second] = new TextEncoder().encode("你");
    expect(textIn(bytes(0x61, first ?? 0, second ?? 0), "begun")).toBe("a");
  });
});

test("picture is scaled to the maximum side with its aspect ratio", () => {
  expect(fitting(4_000, 3_000)).toEqual({ width: IMAGE_SIDE_PX_MAX, height: 1_536 });
  expect(fitting(100, 9_000)).toEqual({ width: 23, height: IMAGE_SIDE_PX_MAX });
  expect(fitting(1, 100_000)).toEqual({ width: 1, height: IMAGE_SIDE_PX_MAX });
  expect(fitting(800, 600)).toEqual({ width: 800, height: 600 });
});

describe("attachments of the composer", () => {
  /** A server with these responses by path. */
  const attachments = (answers: Record<string, unknown> = {}) => {
    const requests: string[] = [];
    const answer = async (input: RequestInfo | URL, init?: RequestInit) => {
      const url = new URL(input instanceof Request ? input.url : input);
      const method = input instanceof Request ? input.method : (init?.method ?? "GET");
      const name = `${method} ${url.pathname}${url.search}`;
      requests.push(name);
      const body = answers[name];
      if (body instanceof Response) return body;
      return body === undefined ? new Response(null, { status: 204 }) : Response.json(body);
    };
    const client = new Throughline({ baseUrl: "http://server", fetch: answer as typeof fetch });
    return { requests, attachments: new Attachments(client) };
  };
  const refused = (of: Attachments): Refusal[] => of.get().refused.map(({ why }) => why);
  const texts = (of: Attachments) =>
    of.get().list.map(({ part }) => (part?.type === "text" ? fileIn(part.text) : part));

  test("text file is attached, and a binary one refused with a reason", async () => {
    const { attachments: of } = attachments();
    await of.add([
      new File(["a,b\n1,2"], "a.csv", { type: "text/csv" }),
      new File(["fn main() {}"], "main.rs"),
      new File(["<svg/>"], "a.svg", { type: "image/svg+xml" }),
      new File([new Uint8Array([0x50, 0x4b, 3, 4])], "a.docx"),
      new File([""], "empty.txt"),
      new File(["x".repeat(FILE_TEXT_BYTES_MAX + 1)], "long.txt"),
      new File([new Uint8Array(FILE_TEXT_BYTES_MAX + 1)], "film.bin"),
    ]);
    expect(texts(of).map((file) => file && "name" in file && file.name)).toEqual([
      "a.csv",
      "main.rs",
      "a.svg",
    ]);
    expect(
      of
        .get()
        .refused.map(({ name, why }) => `${name} ${why}`)
        .sort(),
    ).toEqual(["a.docx binary", "empty.txt empty", "film.bin binary", "long.txt too_long"]);
    // The next files clear the old errors.
    await of.add([new File(["x"], "x.txt")]);
    expect(refused(of)).toEqual([]);
    expect(of.take()).toHaveLength(4);
    expect(of.get()).toEqual({ list: [], refused: [] });
  });

  test("message has limits for files and their text", async () => {
    const { attachments: of } = attachments();
    const part = "x".repeat(FILE_TEXT_BYTES_MAX);
    await of.add(Array.from({ length: 3 }, (_, at) => new File([part], `${at}.txt`)));
    expect(3 * FILE_TEXT_BYTES_MAX).toBeGreaterThan(FILES_TEXT_BYTES_MAX);
    expect([of.get().list.length, refused(of)]).toEqual([2, ["together"]]);
    const many = attachments().attachments;
    await many.add(Array.from({ length: FILES_MAX + 1 }, (_, at) => new File(["x"], `${at}.txt`)));
    expect([many.get().list.length, refused(many)]).toEqual([FILES_MAX, ["too_many"]]);
  });

  test("PDF is read in parts, and its file is deleted", async () => {
    const { requests, attachments: of } = attachments({
      "POST /v1/files?name=a.pdf": { id: "file_1" },
      "GET /v1/files/file_1/text?from_page=1": {
        pages: 3,
        texts: [{ page: 1, text: "One" }],
        unreadable_pages: [],
        next_page: 2,
      },
      "GET /v1/files/file_1/text?from_page=2": {
        pages: 3,
        texts: [{ page: 3, text: "Three" }],
        unreadable_pages: [],
      },
    });
    await of.add([new File(["%PDF-1.4"], "a.pdf")]);
    expect(texts(of)).toEqual([{ name: "a.pdf", text: "[page 1]\nOne\n\n[page 3]\nThree", pages: "1-3" }]);
    expect(requests.at(-1)).toBe("DELETE /v1/files/file_1");
  });

  test("long PDF is attached with the pages that fit", async () => {
    const page = (page: number) => ({ page, text: "x".repeat(FILE_TEXT_BYTES_MAX / 2) });
    const { attachments: of } = attachments({
      "POST /v1/files?name=a.pdf": { id: "file_1" },
      "GET /v1/files/file_1/text?from_page=1": { pages: 9, texts: [page(1), page(2)], unreadable_pages: [] },
    });
    await of.add([new File(["%PDF-1.4"], "a.pdf", { type: "application/pdf" })]);
    expect(texts(of)).toMatchObject([{ pages: "1-1 of 9" }]);
  });

  test("scanned PDF is refused with the server's error", async () => {
    const { attachments: of } = attachments({
      "POST /v1/files?name=a.pdf": { id: "file_1" },
      "GET /v1/files/file_1/text?from_page=1": { pages: 2, texts: [], unreadable_pages: [] },
      "POST /v1/files?name=b.pdf": { id: "file_2" },
      "GET /v1/files/file_2/text?from_page=1": Response.json(
        {
          error: {
            code: "encrypted_pdf",
            type: "invalid_request_error",
            message: "the PDF needs a password",
            param: null,
          },
        },
        { status: 422 },
      ),
    });
    await of.add([new File(["%PDF-1.4"], "a.pdf")]);
    expect([of.get().list, refused(of)]).toEqual([[], ["no_text"]]);
    await of.add([new File(["%PDF-1.4"], "b.pdf")]);
    expect(refused(of)).toMatchObject([{ error: { code: "encrypted_pdf" } }]);
  });

  test("file that is removed while loading stays removed", async () => {
    const { attachments: of } = attachments({ "POST /v1/files?name=a.png": { id: "file_1" } });
    const added = of.add([new File(["x"], "a.png", { type: "image/png" })]);
    const [one] = of.get().list;
    expect(one?.part).toBeUndefined();
    of.remove(one?.key ?? 0);
    await added;
    expect(of.get()).toEqual({ list: [], refused: [] });
  });

  test("retracted message restores its files", async () => {
    const { attachments: of } = attachments();
    of.restore([
      { type: "text", text: "words" },
      { type: "text", text: labelled({ name: "a.csv", text: "1,2" }) },
      { type: "image", file_id: "file_1", url: "blob:2", name: "a.png" },
    ]);
    expect(of.get().list.map(({ name }) => name)).toEqual(["a.csv", "a.png"]);
  });
});
