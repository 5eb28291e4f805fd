import type { CallBlock, Message, Throughline } from "@throughline/client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { en } from "../src/i18n/en.ts";
import { denialIn } from "../src/notices/denial.ts";
import { type Followed, Notices } from "../src/notices/notices.ts";
import { type Notice, notifierOf } from "../src/notices/show.ts";
import { lineOf, linesOf } from "../src/notices/text.ts";
import { tab } from "../src/shared/tab.ts";

const TURN: Followed = { turnId: "turn_1", conversationId: "conv_1", title: "Tea" };

function message(status: Message["status"], text = "It is in."): Message {
  return { status, blocks: [{ kind: "text", text, state: "complete" }] } as unknown as Message;
}

function asking(approvalId = "approval_1", more: Partial<CallBlock> = {}): CallBlock {
  return {
    kind: "tool_call",
    status: "awaiting_approval",
    tool_name: "demo_calendar",
    title: "Calendar entry",
    source: "mcp:home",
    input_summary: "title: Tea",
    approval: { approval_id: approvalId, arguments_hash: "abc", rule: "effect:write" },
    ...more,
  } as CallBlock;
}

function watched({ isWanted = true, answer = (_: string): unknown => ({ items: [] }) } = {}) {
  const shown: Notice[] = [];
  const closed: string[] = [];
  const page = { isHidden: true, isSignedIn: true, unseen: 0 };
  const client = { call: vi.fn(async (route: string) => answer(route)) } as unknown as Throughline;
  const notices = new Notices(client, {
    notifier: {
      show: async (notice) => void shown.push(notice),
      close: async (tag) => void closed.push(tag),
    },
    words: () => en,
    isWanted: () => isWanted,
    isHidden: () => page.isHidden,
    isSignedIn: () => page.isSignedIn,
    onUnseen: (count) => {
      page.unseen = count;
    },
  });
  return { notices, shown, closed, page };
}

describe("notices", () => {
  test("approval is notified once, with a button to deny it, and closed with its answer", () => {
    const { notices, shown, closed, page } = watched();
    const listener = notices.of(TURN);
    listener.onToolCall?.(asking(), 0);
    listener.onToolCall?.(asking(), 0);
    expect(shown).toEqual([
      {
        tag: "throughline/turn_1/approval_1",
        title: en.noticeAsks,
        body: "Tea\ndemo_calendar (from mcp:home, titled “Calendar entry”)\ntitle: Tea",
        url: "/c/conv_1#question",
        denial: {
          label: en.deny,
          denial: { turnId: "turn_1", approvalId: "approval_1", argumentsHash: "abc" },
        },
      },
    ]);
    expect(page.unseen).toBe(1);
    listener.onToolCall?.(asking("approval_1", { status: "denied" }), 0);
    expect(closed).toEqual(["throughline/turn_1/approval_1"]);
  });

  test("elicitation is notified without a button", () => {
    const { notices, shown } = watched();
    const approval = { approval_id: "approval_1", kind: "elicitation", rule: "" };
    notices.of(TURN).onToolCall?.(asking("approval_1", { approval } as unknown as Partial<CallBlock>), 0);
    expect(shown[0]?.denial).toBeUndefined();
  });

  test.each([
    ["completed", en.noticeDone],
    ["error", en.noticeFailed],
    ["length", en.noticeEnded],
    ["cancelled", undefined],
  ] as const)("turn that ended as %s is notified as %o", (status, expected) => {
    const { notices, shown } = watched();
    notices.end(TURN, message(status));
    expect(shown.map(({ title, body, url }) => [title, body, url])).toEqual(
      expected === undefined ? [] : [[expected, "Tea\nIt is in.", "/c/conv_1"]],
    );
  });

  test("notifications need a hidden page and the setting", () => {
    const { notices, shown, page } = watched();
    page.isHidden = false;
    notices.of(TURN).onToolCall?.(asking(), 0);
    notices.end(TURN, message("completed"));
    expect([shown, page.unseen]).toEqual([[], 0]);
    const unwanted = watched({ isWanted: false });
    unwanted.notices.end(TURN, message("completed"));
    expect([unwanted.shown, unwanted.page.unseen], "the tab says it all the same").toEqual([[], 1]);
  });

  test("notifications are closed when the page becomes visible", () => {
    const { notices, closed, page } = watched();
    notices.end(TURN, message("completed"));
    notices.of(TURN).onToolCall?.(asking(), 0);
    expect(page.unseen).toBe(2);
    notices.seen();
    expect(page.unseen).toBe(0);
    expect(closed).toEqual(["throughline/turn_1/", "throughline/turn_1/approval_1"]);
  });
});

describe("turn of another conversation", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("turn is notified once for its approval and once for its end", async () => {
    let isRunning = true;
    const answer = (route: string): unknown => {
      if (route === "GET /v1/turns") return { items: isRunning ? [{ turn_id: "turn_1" }] : [] };
      if (route === "GET /v1/turns/{turn_id}") return { message: message("completed") };
      return { items: [{ tool_id: "call_1", tool_name: "demo_calendar", source: "mcp:home" }] };
    };
    const { notices, shown } = watched({ answer });
    notices.leave(TURN);
    await vi.advanceTimersByTimeAsync(25_000);
    expect(shown.map(({ body, denial }) => [body, denial])).toEqual([
      ["Tea\ndemo_calendar (from mcp:home)", undefined],
    ]);
    isRunning = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(shown.at(-1)?.title).toBe(en.noticeDone);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(shown).toHaveLength(2);
    expect(vi.getTimerCount(), "nothing is looked at any more").toBe(0);
  });
});

test("signed-out session sends no requests", async () => {
  vi.useFakeTimers();
  const answer = vi.fn(() => ({ items: [{ turn_id: "turn_1" }] }));
  const { notices, page } = watched({ answer });
  notices.leave(TURN);
  page.isSignedIn = false;
  await vi.advanceTimersByTimeAsync(60_000);
  expect([answer.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0]);
  vi.useRealTimers();
});

describe("lines of a notification", () => {
  test.each([
    ["pay\u202egpj.exe", "pay\\u202egpj.exe"],
    ["a\u200bb\u2066c", "a\\u200bb\\u2066c"],
    ["two\r\nlines\tand\u2028more", "two lines and more"],
    ["👩\u200d💻", "👩\\u200d💻"],
    ["", ""],
  ])("%j becomes %j", (text, expected) => expect(lineOf(text)).toBe(expected));

  test("lines are limited for any content", () => {
    expect(Array.from(lineOf("😀".repeat(5_000)))).toHaveLength(120);
    expect(lineOf("\u202e".repeat(5_000)).length).toBeLessThanOrEqual(120);
    expect(linesOf("a\nb", undefined, " ", "c")).toBe("a b\nc");
  });
});

test("only the denial of an approval is parsed", () => {
  expect(denialIn({ turnId: "t", approvalId: "a", argumentsHash: 1, more: 2 })).toEqual({
    turnId: "t",
    approvalId: "a",
  });
  for (const other of [null, "deny", {}, { turnId: 1, approvalId: "a" }])
    expect(denialIn(other)).toBeUndefined();
});

test("tab shows open approvals, else new messages, and the badge their number", () => {
  const badges: number[] = [];
  vi.stubGlobal("navigator", {
    setAppBadge: async (count: number) => void badges.push(count),
    clearAppBadge: async () => void badges.push(0),
  });
  tab.show("Tea · Throughline", 0, "");
  tab.setUnseen(1);
  expect(document.title).toBe("(1) Tea · Throughline");
  tab.show("Tea · Throughline", 2, "(2) Waiting for you");
  expect(document.title).toBe("(2) Waiting for you · Tea · Throughline");
  tab.setUnseen(0);
  tab.show("Tea · Throughline", 0, "");
  expect(document.title).toBe("Tea · Throughline");
  expect(badges).toEqual([1, 2, 0]);
  vi.unstubAllGlobals();
});

test("notifications are shown and queried one at a time", async () => {
  const begun: string[] = [];
  let running = 0;
  const step = async (name: string): Promise<void> => {
    begun.push(name);
    running += 1;
    await new Promise((done) => setTimeout(done, 1));
    expect(running, name).toBe(1);
    running -= 1;
  };
  const registration = {
    active: {},
    showNotification: async (title: string) => await step(`show ${title}`),
    getNotifications: async ({ tag }: { tag: string }) => {
      await step(`find ${tag}`);
      if (tag === "a") throw new Error("the database is closed");
      return [];
    },
  };
  vi.stubGlobal("navigator", { serviceWorker: { getRegistration: async () => registration } });
  vi.stubGlobal("Notification", { permission: "granted" });
  vi.stubGlobal("isSecureContext", true);
  const { show, close } = notifierOf(() => undefined);
  const notice = (title: string): Notice => ({ tag: title, title, body: "", url: "/" });
  await Promise.allSettled([show(notice("a")), close("a"), show(notice("b")), close("b")]);
  expect(begun).toEqual(["show a", "find a", "show b", "find b"]);
  vi.unstubAllGlobals();
});
