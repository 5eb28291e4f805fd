// The parser of event streams, against the web platform tests if they are installed, and against the standard.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { EVENT_CHARS_MAX, SseReader } from "@throughline/client";

interface Expected {
  event: string;
  data: string;
  id: string;
}

/** The same events for the bytes as they came, and in pieces of 1, 2, 3 and 7. */
function check(name: string, chunks: Uint8Array[], events: Expected[], retry?: number): void {
  const whole = Buffer.concat(chunks);
  const pieces = [1, 2, 3, 7].map((size) =>
    Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
      whole.subarray(at * size, at * size + size),
    ),
  );
  for (const split of [chunks, [whole], ...pieces]) {
    const reader = new SseReader();
    const items = split.flatMap((bytes) => reader.feed(bytes));
    const seen = items.flatMap((item) =>
      item.kind === "event" ? [{ event: item.event, data: item.data, id: item.id }] : [],
    );
    assert.deepEqual(seen, events, `${name} in ${split.length} pieces`);
    const waits = items.flatMap((item) => (item.kind === "retry" ? [item.ms] : []));
    if (retry !== undefined) assert.equal(waits.at(-1), retry, name);
  }
}

const vectors = `${process.env.THROUGHLINE_VECTORS ?? ""}/suites/sse-format/vectors.jsonl`;
const why = existsSync(vectors) ? false : "THROUGHLINE_VECTORS is not set";

test("all vectors of the web platform tests pass", { skip: why }, () => {
  const cases = readFileSync(vectors, "utf8").split("\n").filter(Boolean);
  for (const line of cases) {
    const { id, chunks_b64, expect, retry } = JSON.parse(line);
    const chunks = chunks_b64.map((chunk: string) => Buffer.from(chunk, "base64"));
    check(id, chunks, expect, retry);
  }
  assert.ok(cases.length >= 60, `only ${cases.length} vectors`);
});

test("line ends, fields and the byte order mark are parsed", () => {
  const message = (data: string, id = "") => ({ event: "message", data, id });
  const cases: [string, Expected[]][] = [
    ["data: a\n\ndata: b\r\rdata: c\r\n\r\n", ["a", "b", "c"].map((data) => message(data))],
    ["data: a\ndata\ndata:  b\n\n", [message("a\n\n b")]],
    ["\uFEFFdata: é\u{1F600}\n\n", [message("é\u{1F600}")]],
    [
      "id: 7\n\ndata: x\n\nid\ndata: y\n\nid: \0\ndata: z\n\n",
      [message("x", "7"), message("y"), message("z")],
    ],
    ["event: e\ndata: 1\n\ndata: 2\n\n", [{ event: "e", data: "1", id: "" }, message("2")]],
    ["data: whole\n\ndata: never ended\n", [message("whole")]],
    [": hb 1\nretry: 12\nretry: 1x\nunknown: 1\n\n", []],
  ];
  for (const [text, events] of cases) check(JSON.stringify(text), [Buffer.from(text)], events);
  check("retry", [Buffer.from("retry: 12\nretry: no\n\n")], [], 12);
});

test("comments are reported, and a bare CR completes an event at once", () => {
  const reader = new SseReader();
  assert.deepEqual(reader.feed(Buffer.from(": hb 1\r\n")), [{ kind: "comment", text: "hb 1" }]);
  const due = reader.feed(Buffer.from("data: a\r\r"));
  assert.deepEqual(due, [{ kind: "event", event: "message", data: "a", id: "" }]);
  assert.deepEqual(reader.feed(Buffer.from("\ndata: b\n\n")).length, 1, "the LF belongs to that CR");
});

test("endless line is refused", () => {
  const reader = new SseReader();
  const piece = Buffer.alloc(16 * 1024 * 1024, "x");
  assert.throws(() => {
    for (let fed = 0; fed <= EVENT_CHARS_MAX; fed += piece.length) reader.feed(piece);
  }, RangeError);
});
