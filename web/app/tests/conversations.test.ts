import type { ConversationInfo, Throughline } from "@throughline/client";
import { expect, test } from "vitest";
import { fileName } from "../src/chat/conversations/export.ts";
import { type ListRow, rowsOf } from "../src/chat/conversations/model/groups.ts";
import { ConversationList } from "../src/chat/conversations/model/list.ts";
import { linkIn, SharedClient } from "../src/sharing/model/client.ts";

function conversation(id: string, more: Partial<ConversationInfo> = {}): ConversationInfo {
  return {
    id,
    title: id,
    title_by: "given",
    turns: 1,
    awaits_approval: false,
    tags: [],
    temporary: false,
    created_at: 0,
    updated_at: 0,
    ...more,
  };
}

const names = (rows: readonly ListRow[]) =>
  rows.map((row) => (row.kind === "group" ? `[${row.name}]` : row.conversation.id));

test("conversations are grouped by calendar day, then month, after pinned ones", () => {
  const now = new Date(2026, 10, 25, 0, 30).getTime();
  const at = (...day: [number, number, number, number?]) => new Date(...day).getTime();
  const rows = rowsOf(
    [
      conversation("pinned", { pinned_at: 1, updated_at: 0 }),
      conversation("now", { updated_at: now }),
      // Half an hour ago, and yesterday.
      conversation("late", { updated_at: at(2026, 10, 24, 23) }),
      conversation("monday", { updated_at: at(2026, 10, 23, 9) }),
      conversation("week", { updated_at: at(2026, 10, 18, 0) }),
      conversation("month", { updated_at: at(2026, 9, 27, 9) }),
      conversation("october", { updated_at: at(2026, 9, 25, 23) }),
      conversation("october too", { updated_at: at(2026, 9, 1, 0) }),
      conversation("last year", { updated_at: at(2025, 9, 1, 0) }),
    ],
    now,
  );
  expect(names(rows)).toEqual([
    "[pinned]",
    "pinned",
    "[today]",
    "now",
    "[yesterday]",
    "late",
    "[last7]",
    "monday",
    "week",
    "[last30]",
    "month",
    `[${at(2026, 9, 1)}]`,
    "october",
    "october too",
    `[${at(2025, 9, 1)}]`,
    "last year",
  ]);
  expect(rowsOf([], now)).toEqual([]);
});

/** A server with these responses, and the requests it got. */
function client(answers: (operation: string, query: Record<string, unknown>) => unknown) {
  const requests: string[] = [];
  const call = async (operation: string, options?: { query?: Record<string, unknown> }) => {
    requests.push(`${operation} ${JSON.stringify(options?.query ?? {})}`);
    return answers(operation, options?.query ?? {});
  };
  return { client: { call } as unknown as Throughline, requests };
}

const LABELS = { folders: [], tags: [] };

test("refreshed list keeps loaded rows, without duplicates", async () => {
  let first = ["c", "b"];
  const { client: server } = client((operation, query) => {
    if (operation.endsWith("labels")) return LABELS;
    if (query.cursor === "b") return { items: [conversation("a", { updated_at: 1 })] };
    return { items: first.map((id) => conversation(id, { updated_at: id.charCodeAt(0) })), next: "b" };
  });
  const list = new ConversationList(server);
  const ids = () => list.get().items.map(({ id }) => id);
  await list.refresh();
  await list.more();
  expect([ids(), list.get().next]).toEqual([["c", "b", "a"], undefined]);
  first = ["d", "c"];
  await list.refresh();
  expect([ids(), list.get().next]).toEqual([["d", "c", "b", "a"], undefined].slice(0, 2));
});

test("view requests its folder or tag, with any characters in the name", async () => {
  const { client: server, requests } = client((operation) =>
    operation.endsWith("labels") ? LABELS : { items: [] },
  );
  const list = new ConversationList(server);
  for (const view of ["", "archived", "folder:a:b", "tag:#1"]) await list.choose(view);
  const lists = requests.filter((one) => one.startsWith("GET /v1/conversations {"));
  expect(lists.map((one) => JSON.parse(one.slice(22)))).toEqual([
    { limit: 100 },
    { limit: 100, archived: true },
    { limit: 100, folder: "a:b" },
    { limit: 100, tag: "#1" },
  ]);
});

test("timed-out search continues, and a late response is ignored", async () => {
  let answer: ((value: unknown) => void) | undefined;
  const { client: server } = client((operation, query) => {
    if (operation.endsWith("labels")) return LABELS;
    if (operation !== "GET /v1/search") return { items: [] };
    if (query.q === "slow") return new Promise((resolve) => (answer = resolve));
    if (query.cursor === undefined) return { items: [], next: "2", partial: true };
    return { items: [{ conversation_id: "c", title: "c", part: "input", snippet: "s", at: 1 }] };
  });
  const list = new ConversationList(server);
  const slow = list.search("slow");
  await list.search("quick");
  answer?.({ items: [{ conversation_id: "late", title: "late", part: "title", snippet: "", at: 1 }] });
  await slow;
  expect(list.get().hits.map((hit) => hit.conversation_id)).toEqual(["c"]);
  await list.search("");
  expect([list.get().hits, list.get().query]).toEqual([[], ""]);
});

test.each([
  ["Trip to Paris", "Trip to Paris"],
  ['a/b\\c:d*e?f"g<h>i|j', "a b c d e f g h i j"],
  ["invoice\u202efdp.exe", "invoice fdp.exe"],
  ["..", "conversation"],
  ["", "conversation"],
  ["巴黎", "巴黎"],
  ["x".repeat(300), "x".repeat(80)],
])("title becomes a valid file name: %j", (title, expected) => {
  expect(fileName(title)).toBe(expected);
});

test("link is parsed from the address, and its client reads files with it", async () => {
  expect(linkIn("/s/abc", "#secret")).toEqual({ id: "abc", secret: "secret" });
  for (const [path, hash] of [
    ["/s/abc", ""],
    ["/s/", "#x"],
    ["/c/abc", "#x"],
    ["/s/a/b", "#x"],
  ] as const) {
    expect(linkIn(path, hash), `${path}${hash}`).toBeUndefined();
  }
  const requests: [string, string][] = [];
  const before = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    requests.push([String(input), String(init?.body)]);
    return new Response("bytes");
  };
  try {
    const shared = new SharedClient({ id: "abc", secret: "s" }, "http://here");
    await shared.call("GET /v1/files/{file_id}/content", { path: { file_id: "f" } });
  } finally {
    globalThis.fetch = before;
  }
  expect(requests).toEqual([["http://here/v1/shared/file", '{"id":"abc","secret":"s","file_id":"f"}']]);
});
