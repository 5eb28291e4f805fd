import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type CallBlock, emptyMessage, Throughline, TurnStore } from "@throughline/client";
import fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Avatar } from "../src/avatar/model.ts";
import Changes from "../src/chat/card/changes.tsx";
import { ChatProvider } from "../src/chat/context.tsx";
import { changesOf } from "../src/chat/model/changes.ts";
import { ConversationStore } from "../src/chat/model/conversation.ts";
import { NEW } from "../src/chat/model/entry.ts";
import { OpenApprovals } from "../src/chat/model/open-approvals.ts";
import { language } from "../src/preferences.ts";

beforeEach(() => language.set("en"));

describe("differences of arguments", () => {
  const decisions = (before: unknown, now: unknown): string[] =>
    changesOf(before, now).map(
      ({ kind, path, before, now }) =>
        `${kind} ${path} ${JSON.stringify(before?.value)} ${JSON.stringify(now?.value)}`,
    );

  test.each<[unknown, unknown, string[]]>([
    [{ a: 1 }, { a: 1 }, []],
    [{ a: 1 }, { a: 2, b: null }, ["changed a 1 2", "added b undefined null"]],
    [{ a: 1, b: 2 }, { b: 2 }, ["removed a 1 undefined"]],
    [{ at: { day: 1, hour: 9 } }, { at: { day: 2, hour: 9 } }, ["changed at.day 1 2"]],
    [{ list: [1, 2] }, { list: [1, 3] }, ["changed list [1,2] [1,3]"]],
    [{ a: {} }, { a: "x" }, ['changed a {} "x"']],
    [undefined, { a: 1 }, ['changed  undefined {"a":1}']],
    // Inherited members are not arguments.
    [{}, { constructor: 1 }, ["added constructor undefined 1"]],
  ])("from %o to %o", (before, now, expected) => {
    expect(decisions(before, now)).toEqual(expected);
  });

  test("equal values have no differences, and both directions have the same number", () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(value, (one) => {
        expect(changesOf(one, structuredClone(one))).toEqual([]);
      }),
    );
    fc.assert(
      fc.property(value, value, (one, other) => {
        expect(changesOf(one, other)).toHaveLength(changesOf(other, one).length);
      }),
    );
  });
});

describe("differences on the card", () => {
  const call = (tool_id: string, more: Partial<CallBlock>): CallBlock => ({
    kind: "tool_call",
    tool_id,
    tool_name: "demo.calendar",
    ...more,
  });
  const asks = call("t.9", { status: "awaiting_approval", arguments: { title: "Tea", day: 2 } });

  function show(...before: CallBlock[]): void {
    const client = new Throughline({ baseUrl: "http://server" });
    const conversation = new ConversationStore(client);
    const store = new TurnStore({ ...emptyMessage(), blocks: [...before, asks] });
    const entries = [{ key: "1", turnId: "t", store, draft: undefined }];
    vi.spyOn(conversation, "get").mockReturnValue({ ...NEW, entries });
    const chat = {
      conversation,
      openApprovals: new OpenApprovals(),
      avatar: new Avatar(client),
      hold: () => undefined,
    };
    render(
      <ChatProvider value={chat}>
        <Changes call={asks} />
      </ChatProvider>,
    );
  }

  test("differences to the last call are shown as text and signs, and can be folded", async () => {
    show(
      call("t.1", { status: "success", started_at: 1, arguments: { title: "Older" } }),
      call("t.2", { status: "success", started_at: 2, arguments: { title: "Coffee", room: "A" } }),
      call("t.3", { status: "denied", arguments: { title: "Denied" } }),
      call("t.4", { status: "success", started_at: 4, tool_name: "other", arguments: {} }),
    );
    const items = screen.getAllByRole("listitem").map((item) => item.textContent);
    expect(items).toEqual(['≠ Changedtitle "Coffee" → "Tea"', "+ Addedday 2", '− Removedroom "A"']);
    await userEvent.click(screen.getByRole("button", { name: "3 changes since the previous call" }));
    expect(screen.queryByRole("list")).toBeNull();
  });

  test("same arguments are reported, and without an earlier call nothing is shown", () => {
    show(call("t.1", { status: "success", started_at: 1, arguments: { day: 2, title: "Tea" } }));
    expect(document.body).toHaveTextContent("Same arguments as the previous call");
    document.body.replaceChildren();
    show(call("t.1", { status: "denied", arguments: {} }));
    expect(document.body).toHaveTextContent("");
  });
});
