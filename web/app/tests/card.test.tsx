import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type CallBlock, Throughline, TurnStore } from "@throughline/client";
import { beforeEach, expect, test, vi } from "vitest";
import { Avatar } from "../src/avatar/model.ts";
import { Card } from "../src/chat/card/card.tsx";
import { ChatProvider, EntryProvider } from "../src/chat/context.tsx";
import { ConversationStore } from "../src/chat/model/conversation.ts";
import type { Entry } from "../src/chat/model/entry.ts";
import { OpenApprovals } from "../src/chat/model/open-approvals.ts";
import { fetchWords } from "../src/i18n/words.ts";
import { language } from "../src/preferences.ts";
import { ClientProvider } from "../src/session/context.tsx";

const requests: { path: string; body: unknown }[] = [];
const openApprovals = new OpenApprovals();

/** A card of a turn whose server accepts everything, or answers as given. */
function show(call: Partial<CallBlock>, answer = (): Response => Response.json({ status: "resolved" })) {
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input, init) => {
      requests.push({
        path: new URL(String(input)).pathname,
        body: JSON.parse(String(init?.body ?? "null")),
      });
      return answer();
    },
  });
  const conversation = new ConversationStore(client);
  const entry: Entry = { key: "1", turnId: "turn_1", store: new TurnStore(), draft: undefined };
  const whole: CallBlock = {
    kind: "tool_call",
    tool_id: "c1",
    tool_name: "demo.calendar",
    effect: "write",
    ...call,
  };
  return render(
    <ClientProvider value={client}>
      <ChatProvider
        value={{ conversation, openApprovals, avatar: new Avatar(client), hold: () => undefined }}
      >
        <EntryProvider value={entry}>
          <Card call={whole} />
        </EntryProvider>
      </ChatProvider>
    </ClientProvider>,
  );
}

const QUESTION: Partial<CallBlock> = {
  status: "awaiting_approval",
  arguments: { title: "Tea" },
  input_summary: "title: Tea",
  approval: { approval_id: "q1", question: "?", rule: "effect:write", arguments_hash: "h" },
};

beforeEach(() => {
  requests.length = 0;
  language.set("en");
  Element.prototype.scrollIntoView = vi.fn();
});

test.each([
  ["preparing", "Writing arguments", "writing"],
  ["queued", "Queued", "queued"],
  ["running", "Running", "running"],
  ["success", "Done", "good"],
  ["error", "Failed", "bad"],
  ["denied", "Denied", "none"],
  ["cancelled", "Stopped", "none"],
  ["timed_out", "Timed out", "bad"],
  ["not_started", "Not started", "none"],
  ["unknown", "Unknown", "bad"],
] as const)("call with status %s shows it as text and shape, folded", (status, word, look) => {
  const { container } = show({ status, started_at: Date.now() });
  const button = screen.getByRole("button", { name: new RegExp(word) });
  expect(button).toHaveAttribute("aria-expanded", "false");
  expect(container.querySelector(".knot")).toHaveAttribute("data-look", look);
});

test("arriving arguments show their keys and a bar, and open as JSON", async () => {
  const { container } = show({ status: "preparing", input_text: '{"city":"Chengdu","days":[1,' });
  const summary = container.querySelector(".summary");
  expect(summary).toHaveTextContent('city: "Chengdu", days:');
  expect(summary?.lastElementChild).toHaveClass("ghost");
  await userEvent.click(screen.getByRole("button", { name: /Writing arguments/ }));
  expect(container.querySelector("pre.caret")?.textContent).toBe(
    '{\n  "city": "Chengdu",\n  "days": [\n    1,',
  );
});

test("invalid arguments are shown as the error", () => {
  show({ status: "not_started", error: { code: "invalid_arguments", message: "at /when: no date" } });
  expect(screen.getByRole("button", { name: /Invalid arguments/ })).toBeInTheDocument();
});

test("approval opens its card, and the answer contains the arguments hash", async () => {
  show(QUESTION);
  const question = await screen.findByRole("group", { name: /wants to run demo.calendar/ });
  expect(within(question).getByText("Tea")).toBeInTheDocument();
  await userEvent.click(within(question).getByRole("button", { name: /^Approve/ }));
  expect(requests).toEqual([
    { path: "/v1/turns/turn_1/approvals/q1", body: { decision: "approve", arguments_hash: "h" } },
  ]);
});

test("approval names the tool and its source, and a title only after them", async () => {
  const title = `time.now” (from builtin)? It only reads. ${"x".repeat(60)}`;
  show({ ...QUESTION, tool_name: "e.wipe2", source: "mcp:e", title });
  const heading =
    "Throughline wants to run e.wipe2 (from mcp:e, titled “time.now' (from builtin)? It only reads. xxxxx";
  const question = await screen.findByRole("group", { name: /wants to run/ });
  expect(question.getAttribute("aria-labelledby")).not.toBeNull();
  expect(
    within(question)
      .getByText(/wants to run/)
      .textContent?.startsWith(heading),
  ).toBe(true);
  expect(
    within(question)
      .getByText(/wants to run/)
      .textContent?.endsWith("…”)"),
  ).toBe(true);
});

test.each([
  ["This tool in this turn", false, { scope: "turn", arguments: "any" }],
  ["This tool in this conversation", true, { scope: "conversation", arguments: "these" }],
  ["Always this tool", false, { scope: "always", arguments: "any" }],
] as const)("lasting answer is sent: %s, only these arguments: %s", async (label, onlyThese, remember) => {
  show(QUESTION);
  const question = await screen.findByRole("group", { name: /wants to run demo.calendar/ });
  expect(within(question).queryByText(/never ask again/)).toBeNull();
  await userEvent.click(within(question).getByRole("button", { name: "More ways to approve" }));
  // Lasting choices name what they cover.
  expect(within(question).getByText(/demo.calendar changes data and will never ask again/)).toBeVisible();
  if (onlyThese) {
    await userEvent.click(within(question).getByRole("checkbox", { name: "Only these arguments" }));
    expect(within(question).getByText(/with exactly these arguments/)).toBeVisible();
  }
  await userEvent.click(within(question).getByRole("button", { name: label }));
  expect(requests[0]?.body).toEqual({ decision: "approve", remember, arguments_hash: "h" });
});

test("edited arguments are in the head of the card, with their editor", () => {
  const { container } = show({
    status: "success",
    arguments: { title: "Tea" },
    input_summary: "title: Tea",
    ran_with: { title: "Coffee" },
  });
  expect(container.querySelector(".summary")).toHaveTextContent("title: Coffee");
  expect(screen.getByRole("button", { name: /edited by you/ })).toBeInTheDocument();
});

test("folded card shows progress as numbers and a bar", () => {
  const { container } = show({ status: "running", progress: { progress: 3, total: 10, message: "Reading" } });
  expect(container.querySelector(".summary")).toHaveTextContent("3 / 10 · Reading");
  expect(container.querySelector("progress")).toHaveAttribute("value", "3");
});

test("card shows the tool's title first, and no badge when finished", () => {
  const { container } = show({ status: "success", title: "Calendar" });
  expect(screen.getByRole("button", { name: /^Calendar/ })).toHaveTextContent("demo.calendar");
  expect(container.querySelector(".pill")?.firstElementChild?.tagName).toBe("svg");
});

test("denial sends its reason", async () => {
  show(QUESTION);
  await userEvent.click(await screen.findByRole("button", { name: /^Deny/ }));
  await userEvent.type(screen.getByRole("textbox", { name: /^Reason/ }), "not today{Enter}");
  expect(requests[0]?.body).toEqual({ decision: "deny", reason: "not today", arguments_hash: "h" });
});

test("edited arguments run, and invalid ones are not sent", async () => {
  show(QUESTION);
  await userEvent.click(await screen.findByRole("button", { name: "Edit arguments" }));
  // The form of the tool cannot be loaded here, so the arguments are edited as JSON.
  const field = await screen.findByRole("textbox", { name: "Arguments" });
  requests.length = 0;
  await userEvent.clear(field);
  await userEvent.type(field, "[[1]");
  await userEvent.click(screen.getByRole("button", { name: /Approve with edits/ }));
  expect(requests).toEqual([]);
  expect(screen.getByRole("alert")).toHaveTextContent("Must be a JSON object");
  await userEvent.clear(field);
  await userEvent.type(field, '{{"title":"Coffee"}');
  await userEvent.click(screen.getByRole("button", { name: /Approve with edits/ }));
  expect(requests[0]?.body).toMatchObject({ decision: "approve", arguments: { title: "Coffee" } });
});

test("refused answer is shown on the card, which can be answered again", async () => {
  const refusal = {
    error: { code: "arguments_changed", message: "the arguments are others now", type: "x" },
  };
  show(QUESTION, () => Response.json(refusal, { status: 409 }));
  await userEvent.click(await screen.findByRole("button", { name: /^Approve/ }));
  expect(await screen.findByRole("alert")).toHaveTextContent("the arguments are others now");
  expect(screen.getByRole("button", { name: /^Approve/ })).toBeEnabled();
});

test("keys go to the newest visible approval", () => {
  const decisions: string[] = [];
  const arbiter = new OpenApprovals();
  const ask = (id: string, isVisible: boolean) =>
    arbiter.add({
      id,
      approve: () => decisions.push(`approve ${id}`),
      deny: () => decisions.push(`deny ${id}`),
      show: () => decisions.push(`show ${id}`),
      isVisible: () => isVisible,
    });
  const plain = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, repeat: false };
  expect(arbiter.key({ key: "a", ...plain })).toBe(false);
  ask("old", true);
  const end = ask("seen", true);
  ask("below", false);
  arbiter.key({ key: "a", ...plain });
  arbiter.key({ key: "A", ...plain, ctrlKey: true });
  arbiter.key({ key: "a", ...plain, repeat: true });
  end();
  arbiter.key({ key: "D", ...plain });
  expect(decisions).toEqual(["approve seen", "deny old"]);
});

test("elicitation is a form, whose values are sent", async () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string", title: "Your name" } },
    required: ["name"],
  };
  show({
    status: "awaiting_approval",
    approval: {
      approval_id: "q2",
      kind: "elicitation",
      question: "Who?",
      rule: "mcp",
      arguments_hash: "h",
      schema,
    },
  });
  await userEvent.type(await screen.findByLabelText("Your name"), "Ada");
  await userEvent.click(screen.getByRole("button", { name: "Submit" }));
  expect(requests).toContainEqual({
    path: "/v1/turns/turn_1/approvals/q2",
    body: expect.objectContaining({ decision: "approve", arguments: { name: "Ada" } }),
  });
});

test.each(["error", "unknown"] as const)(
  "call that ended as %s shows the reason in its line, and in full below",
  async (status) => {
    const { container } = show({ status, error: { code: "unknown", message: "The line broke.\nHTTP 502" } });
    expect(container.querySelector(".summary")).toHaveTextContent("The line broke.");
    await userEvent.click(screen.getByRole("button", { name: /demo.calendar/ }));
    expect(screen.getByText(/HTTP 502/, { selector: "p" })).toBeVisible();
  },
);

test("outcomes and own reasons are shown in Chinese; a tool's text stays as it is", async () => {
  await fetchWords("zh-CN");
  language.set("zh-CN");
  const { unmount } = show({ status: "error", error: { code: "failed", message: "No such file." } });
  await userEvent.click(screen.getByRole("button", { name: /demo.calendar/ }));
  expect(screen.getByText("工具运行失败。")).toBeVisible();
  expect(screen.getByText("No such file.", { selector: "p" })).toBeVisible();
  unmount();
  const reason = "The reply ended inside this call.";
  show({ status: "not_started", error: { code: "interrupted" }, problem: reason, raw: "{" });
  await userEvent.click(screen.getByRole("button", { name: /demo.calendar/ }));
  expect(screen.getByText("回复在调用完整之前中断，调用没有开始。")).toBeVisible();
  expect(screen.getByText("回复在这个调用中间中断了。")).toBeVisible();
});

test("refused answer is explained in Chinese, with a remedy", async () => {
  await fetchWords("zh-CN");
  language.set("zh-CN");
  const error = { code: "question_closed", type: "x", message: "question `q1` is closed", remedy: null };
  show(QUESTION, () => Response.json({ error }, { status: 410 }));
  await userEvent.click(screen.getByRole("button", { name: /^批准/ }));
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("这个问题已关闭：已超时，或对应的调用已结束。 question `q1` is closed");
});
