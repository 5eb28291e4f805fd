// The page of an approval link in a chat: it shows the exact arguments, and its answer counts once.

import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

/** Markup, a character that reverses the text around it, and an invisible one. */
const ENTRY = { title: "<b>Tea</b> \u202e→\ufe0f", when: "2026-11-24" };

const fixture = ServerFixture.of(() =>
  Server.scripted([
    {
      when: { contains: "note", step: 1 },
      does: [{ call: { name: "demo_calendar", arguments: ENTRY } }],
    },
    { does: [{ say: "Done." }] },
  ]),
);

interface ChatMessage {
  role: string;
  content: string;
}

/** The response to a chat client. */
async function chat(messages: readonly ChatMessage[]): Promise<string> {
  const response = await fetch(`${fixture.server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${await fixture.server.key()}` },
    body: JSON.stringify({ model: "default:text", messages }),
  });
  expect(response.status).toBe(200);
  const { choices } = await response.json();
  return String(choices[0].message.content);
}

/** A chat that ended with an approval, and the link in it. */
async function chatWithApproval(): Promise<{ messages: ChatMessage[]; link: string }> {
  const question = { role: "user", content: "note it" };
  const answer = await chat([question]);
  const link = /\((http\S+#\S+)\)/.exec(answer)?.[1] ?? "";
  expect(link, answer).toContain("/approve#");
  return { messages: [question, { role: "assistant", content: answer }], link };
}

test("approval link shows the exact call, and approving continues the chat", async () => {
  const { messages, link } = await chatWithApproval();
  const user = await fixture.anonymous({ width: 390, height: 700 });
  const { page } = user;
  await page.goto(link);
  await page.getByText("The assistant in your chat wants to run this:").waitFor();
  expect(new URL(page.url()).hash, "the link's code leaves the address").toBe("");
  const shown = await page.locator("pre").innerText();
  expect(shown).toContain('"title": "<b>Tea</b> \\u202e→\\ufe0f"');
  expect(JSON.parse(shown)).toEqual(ENTRY);
  expect(await page.locator("pre b").count(), "data is text").toBe(0);
  await user.picture("approve");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "Yes, run it" }).click();
  await page.getByText(/^Approved\./).waitFor();
  await expect.poll(() => page.getByRole("button").count(), { message: "it is answered once" }).toBe(0);
  expect(await chat([...messages, { role: "user", content: "yes" }])).toContain("Done.");

  // A second answer is refused. The browser logs its status, as it should.
  await page.goto("about:blank");
  await page.goto(link);
  await page.getByText(/question not found/).waitFor();
  expect(await page.getByRole("button").count()).toBe(0);
  user.errors.length = 0;
});

test("approval link is denied in Chinese, in the dark", async () => {
  const { messages, link } = await chatWithApproval();
  const user = await fixture.anonymous({ locale: "zh-CN", colorScheme: "dark" });
  const { page } = user;
  await page.goto(link);
  await page.getByText("聊天中的助手想运行：").waitFor();
  await expect.poll(() => page.locator("html").getAttribute("lang")).toBe("zh-Hans");
  await user.picture("approve-zh");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "否" }).click();
  await page.getByText(/^已拒绝。/).waitFor();
  const rest = await chat([...messages, { role: "user", content: "no" }]);
  expect(rest).toContain("denied");
});
