import { type Block, type BlockPosition, emptyMessage } from "@throughline/client";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Announcements } from "../src/chat/model/announcements.ts";
import { rowsOf, summaryOf } from "../src/chat/model/groups.ts";
import { type Seen, statusOf } from "../src/chat/model/status.ts";
import { grouped } from "../src/i18n/en.ts";
import { wordsOf } from "../src/i18n/words.ts";
import { takeLink } from "../src/session/session.ts";
import { duration } from "../src/shared/format.ts";

const text = (at: number): BlockPosition => ({ at, kind: "text" });
const call = (at: number, status: NonNullable<BlockPosition["status"]>, tool = "t.x"): BlockPosition => ({
  at,
  kind: "tool_call",
  status,
  tool,
});

describe("groups", () => {
  test("consecutive finished calls are grouped; failed and waiting ones are not", () => {
    const outline = [
      text(0),
      call(1, "success"),
      call(2, "success"),
      call(3, "error"),
      call(4, "success"),
      text(5),
      call(6, "success"),
      call(7, "success"),
      call(8, "running"),
    ];
    const rows = rowsOf(outline).map((row) =>
      row.kind === "block" ? row.at : row.calls.map(({ at }) => at),
    );
    expect(rows).toEqual([0, [1, 2], 3, 4, 5, [6, 7], 8]);
  });

  test("group lists its calls by the titles of their tools", () => {
    const block = (title: string, args: object): Block => ({
      kind: "tool_call",
      tool_name: "t.x",
      title,
      arguments: args,
    });
    const calls = [
      block("Weather", { city: "Paris" }),
      block("", {}),
      block("Weather", { city: "Oslo", days: 2 }),
    ];
    expect(summaryOf(calls)).toBe("Weather: Paris · Oslo; t.x");
  });

  test("calls that may not fold yet are not grouped", () => {
    const outline = [call(0, "success"), call(1, "success"), call(2, "success"), text(3)];
    expect(rowsOf(outline, new Set([0, 1])).map(({ kind }) => kind)).toEqual(["group", "block", "block"]);
    expect(rowsOf(outline, new Set([0])).map(({ kind }) => kind)).toEqual(Array(4).fill("block"));
  });
});

describe("status line shows the most urgent status", () => {
  const seen = (change: Partial<Seen>): Seen => ({
    isRunning: true,
    isStopping: false,
    isTaken: true,
    connection: { state: "open" },
    head: emptyMessage(),
    outline: [],
    ...change,
  });
  const away = { state: "waiting", failures: 1, ms: 1_000, error: undefined } as const;
  test.each<[string, Partial<Seen>]>([
    ["idle", { isRunning: false }],
    ["stopping", { isStopping: true, connection: away }],
    ["reconnecting", { connection: away, outline: [call(0, "awaiting_approval")] }],
    ["connecting", { isTaken: false }],
    ["needs_you", { outline: [call(0, "running"), call(1, "awaiting_approval")] }],
    ["running", { outline: [call(0, "running"), text(1)] }],
    ["retrying", { head: { ...emptyMessage(), waiting: { reason: "rate_limit" } } }],
    [
      "waiting_for_model",
      { head: { ...emptyMessage(), waiting: { reason: "first_byte" } }, outline: [text(0)] },
    ],
    ["waiting_for_client", { head: { ...emptyMessage(), waiting: { reason: "client", until: 60_000 } } }],
    ["silent", { head: { ...emptyMessage(), waiting: { reason: "silence" } }, outline: [text(0)] }],
    ["waiting_for_model", {}],
    ["thinking", { outline: [{ at: 0, kind: "thinking" }] }],
    ["arguments", { outline: [call(0, "preparing")] }],
    ["writing", { outline: [text(0)] }],
  ])("%s", (kind, change) => {
    expect(statusOf(seen(change)).kind).toBe(kind);
  });
});

describe("announcements", () => {
  beforeEach(() => vi.useFakeTimers());
  const words = wordsOf("en");

  test("announcements are whole sentences, at most one in 1.5 s", () => {
    const announced: string[] = [];
    const announcements = new Announcements(() => words);
    announcements.listen(
      (text) => announced.push(text),
      () => "sentences",
    );
    for (const delta of ["One ", "sentence. And", " another", "! 还有", "一句。", "no end"])
      announcements.onText(delta);
    expect(announced).toEqual(["One sentence."]);
    vi.advanceTimersByTime(1_499);
    expect(announced).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(announced.at(-1)).toBe("And another! 还有一句。");
    announcements.end();
    vi.advanceTimersByTime(1_500);
    expect(announced.at(-1)).toBe("no end Answer complete.");
  });

  test("disabled announcements still include approvals", () => {
    const announced: string[] = [];
    const announcements = new Announcements(() => words);
    announcements.listen(
      (text) => announced.push(text),
      () => "off",
    );
    announcements.onText("A sentence. ");
    announcements.onToolCall({ kind: "tool_call", tool_name: "a.b", status: "running" });
    announcements.onToolCall({ kind: "tool_call", tool_name: "a.b", status: "awaiting_approval" });
    announcements.end();
    vi.advanceTimersByTime(5_000);
    expect(announced).toEqual([words.toolAsks("a.b")]);
  });
});

test.each([
  [0, "0 ms"],
  [999.6, "1000 ms"],
  [1_000, "1.0 s"],
  [1_460, "1.4 s"],
  [12_900, "12 s"],
  [65_000, "1 m 5 s"],
])("%d ms is written %s", (ms, expected) => expect(duration(ms)).toBe(expected));

test("sign-in link is removed from the address", () => {
  for (const [hash, expected] of [
    ["#sign-in=abc", { ticket: "abc" }],
    ["#token=tl_1_2", { key: "tl_1_2" }],
    ["#elsewhere", undefined],
  ] as const) {
    history.replaceState(null, "", `/c/1${hash}`);
    expect(takeLink()).toEqual(expected);
    expect(location.href.includes("abc") || location.href.includes("tl_")).toBe(false);
    expect(location.pathname).toBe("/c/1");
  }
});

test.each([
  [0, "0"],
  [999, "999"],
  [1_000, "1,000"],
  [48_814, "48,814"],
  [1_234_567, "1,234,567"],
  [-12_345, "-12,345"],
])("%d bytes are written %s", (n, written) => {
  expect(grouped(n)).toBe(written);
});
