// Conversations: the list and its actions, exports and shared links.

import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Throughline } from "../../client/src/index.ts";
import type { BrowserOptions, BrowserUser } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

/** Imports a conversation: pairs of a message and its answer. */
async function imported(client: Throughline, title: string, ...pairs: [string, string][]): Promise<string> {
  const messages = pairs.flatMap(([content, answer]) => [
    { role: "user", content },
    { role: "assistant", content: answer },
  ]);
  // biome-ignore lint/suspicious/noExplicitAny: the operation takes a list as well as lines
  const made = await client.call("POST /v1/conversations/import", { body: messages as any });
  await client.call("PATCH /v1/conversations/{conversation_id}", {
    path: { conversation_id: made.id },
    body: { title },
  });
  return made.id;
}

function row(page: Page, title: string) {
  return page.locator(".conversation-row").filter({ hasText: title });
}

async function menuOf(page: Page, title: string): Promise<void> {
  await row(page, title).hover();
  await row(page, title).getByRole("button").click();
  await page.locator(".menu").waitFor();
}

/** Titles of the list in visible order. */
async function titles(page: Page): Promise<string[]> {
  return await page.locator(".conversation-row > a").allTextContents();
}

test("list next to the chat can be hidden, and stays hidden", async () => {
  const own = await fixture.ownServer(Server.start());
  await imported(await own.client(), "Zebra crossing", ["Hello, you zebra", "Stripes."]);
  const user = await fixture.user({}, own);
  const { page } = user;
  await row(page, "Zebra crossing").waitFor();
  expect(await user.violations()).toEqual([]);
  await user.picture("conversations-beside");
  await row(page, "Zebra crossing").getByRole("link").click();
  await page.getByRole("heading", { name: "Zebra crossing", level: 1 }).waitFor();
  await expect
    .poll(() => page.locator("[aria-current=page]").filter({ hasText: "Zebra crossing" }).count())
    .toBe(1);
  const focused = (): Promise<string | undefined> =>
    page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? undefined);
  // The shortcut of the list focuses it, and does not close it.
  await page.getByRole("button", { name: "Search conversations" }).click();
  expect(await focused()).toBe("Search messages");
  await page.getByRole("button", { name: "Hide the list" }).click();
  const opener = page.getByRole("button", { name: "Conversations", exact: true });
  expect([await focused(), await opener.getAttribute("aria-expanded")]).toEqual(["Conversations", "false"]);
  await page.reload();
  await page.getByRole("heading", { name: "Zebra crossing", level: 1 }).waitFor();
  expect(await page.locator("aside.conversations").count()).toBe(0);
  await opener.click();
  await row(page, "Zebra crossing").waitFor();
  await expect.poll(focused).toBe("Search messages");
});

test("conversation is renamed in place, pinned, filed, tagged and archived", async () => {
  const own = await fixture.ownServer(Server.start());
  const client = await own.client();
  for (const title of ["First", "Second", "Third"]) await imported(client, title, ["Hello", "Hi"]);
  const user = await fixture.user({}, own);
  const { page } = user;
  await row(page, "First").waitFor();
  await expect.poll(() => titles(page)).toEqual(["Third", "Second", "First"]);
  await menuOf(page, "First");
  await page.locator(".menu-facts").getByText("1 turn", { exact: true }).waitFor();
  expect(await user.violations()).toEqual([]);
  await user.picture("conversation-menu");
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByRole("heading", { name: "Pinned" }).waitFor();
  await expect.poll(() => titles(page)).toEqual(["First", "Third", "Second"]);

  await menuOf(page, "Second");
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "New name" }).fill("Renamed");
  await page.keyboard.press("Enter");
  await row(page, "Renamed").waitFor();

  await menuOf(page, "Renamed");
  await page.getByRole("button", { name: "Folder and tags" }).click();
  await page.getByRole("dialog").getByLabel("Folder", { exact: true }).fill("Travel");
  await page.getByRole("dialog").getByLabel(/^Tags/).fill("paris, 2026，paris");
  await user.picture("filing");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const filter = page.getByRole("combobox", { name: "Show" });
  await filter.selectOption({ label: "Travel (1)" });
  await expect.poll(() => titles(page)).toEqual(["Renamed"]);
  await filter.selectOption({ label: "2026 (1)" });
  await expect.poll(() => titles(page)).toEqual(["Renamed"]);

  await menuOf(page, "Renamed");
  await page.getByRole("button", { name: "Archive" }).click();
  await filter.selectOption({ label: "All conversations" });
  await expect.poll(() => titles(page)).toEqual(["First", "Third"]);
  await filter.selectOption({ label: "Archived" });
  await expect.poll(() => titles(page)).toEqual(["Renamed"]);
  await menuOf(page, "Renamed");
  await page.getByRole("button", { name: "Unarchive" }).click();
  await filter.selectOption({ label: "All conversations" });
  await expect.poll(() => titles(page)).toEqual(["First", "Renamed", "Third"].sort());
});

test("search hit shows its context, and opens its turn within a long conversation", async () => {
  const own = await fixture.ownServer(Server.start());
  const messages = Array.from({ length: 120 }, (_, n): [string, string] => [
    `Question ${n}`,
    n === 40 ? "The walrus said so." : `Answer ${n}. ${"Words. ".repeat(40)}`,
  ]);
  await imported(await own.client(), "Long", ...messages);
  await imported(await own.client(), "Other", ["Hello", "Hi"]);
  const user = await fixture.user({}, own);
  const { page } = user;
  await page.getByRole("searchbox").fill("WALRUS");
  const hit = page.locator(".search-hit");
  await hit.waitFor();
  await expect.poll(() => hit.textContent()).toContain("Long");
  await expect.poll(() => hit.locator("mark").textContent()).toBe("walrus");
  expect(await user.violations()).toEqual([]);
  await user.picture("conversation-search");
  await hit.click();
  const found = page.getByText("The walrus said so.", { exact: true }).last();
  await found.waitFor();
  await expect
    .poll(() => found.evaluate((element) => element.getBoundingClientRect().top < innerHeight))
    .toBe(true);
  expect(await page.getByText("Question 119", { exact: true }).count()).toBe(0);
  // More turns load in both directions.
  await page.getByRole("button", { name: "Load later messages" }).click();
  await page.getByText("Question 80", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Load earlier messages" }).click();
  await page.getByText("Question 10", { exact: true }).waitFor();
  // A new message continues from the end, not from here.
  await user.send("Hello again");
  await page.getByText("Question 119", { exact: true }).waitFor();
  await user.settled();
  await expect
    .poll(() => page.getByRole("article", { name: "Your message" }).last().textContent())
    .toContain("Hello again");
});

test("deleted conversation is restored with one click", async () => {
  const own = await fixture.ownServer(Server.start());
  await imported(await own.client(), "Precious", ["Hello", "The answer is 42."]);
  const user = await fixture.user({}, own);
  const { page } = user;
  await row(page, "Precious").getByRole("link").click();
  await page.getByText("The answer is 42.").waitFor();
  await menuOf(page, "Precious");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.locator(".toast").getByText("Deleted “Precious”").waitFor();
  await expect.poll(() => row(page, "Precious").count()).toBe(0);
  await expect.poll(() => new URL(page.url()).pathname).toBe("/");
  await user.picture("undo");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("The answer is 42.").waitFor();
  await row(page, "Precious").waitFor();
});

test("temporary chat is not listed, and is deleted on leaving unless it is kept", async () => {
  const own = await fixture.ownServer(Server.start());
  const client = await own.client();
  const user = await fixture.user({}, own);
  const { page } = user;
  const begin = async (): Promise<string> => {
    await page.getByRole("button", { name: "Temporary chat" }).click();
    await page.getByRole("note").waitFor();
    await user.send("Hello");
    await page.waitForURL("**/c/*");
    await user.settled();
    return new URL(page.url()).pathname.slice(3);
  };
  const left = await begin();
  await user.picture("temporary");
  expect(await user.violations()).toEqual([]);
  expect((await client.call("GET /v1/conversations")).items).toEqual([]);
  const path = { conversation_id: left };
  expect((await client.call("GET /v1/conversations/{conversation_id}", { path })).temporary).toBe(true);
  await page.getByRole("link", { name: "New chat" }).click();
  await expect
    .poll(() => client.call("GET /v1/conversations/{conversation_id}", { path }).catch(() => "gone"))
    .toBe("gone");
  await expect.poll(() => page.getByRole("note").count()).toBe(0);

  await begin();
  await page.getByRole("button", { name: "Keep it" }).click();
  await expect.poll(() => page.getByRole("note").count()).toBe(0);
  await page.getByRole("link", { name: "New chat" }).click();
  await row(page, "Hello").waitFor();
});

test("row shows a running turn and an open approval", async () => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.user({}, own);
  const { page } = user;
  await user.send("Put a meeting into my calendar tomorrow at 9");
  await page.getByRole("group", { name: /wants to run/ }).waitFor();
  await page.getByRole("link", { name: "New chat" }).click();
  await page.locator(".conversation-row .state").filter({ hasText: "Needs you" }).waitFor();
  await user.picture("conversation-asks");
});

test("ten thousand conversations scroll with few rows in the DOM", async () => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.user({}, own);
  const { page } = user;
  const all = 10_000;
  // The server's list is measured elsewhere; this is the rendering.
  await page.route("**/v1/conversations?*", async (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
    const items = Array.from({ length: 100 }, (_, n) => ({
      id: `conv_${from + n}`,
      title: `Number ${from + n}`,
      title_by: "given",
      turns: 1,
      awaits_approval: false,
      tags: [],
      temporary: false,
      created_at: 0,
      updated_at: Date.now() - (from + n) * 60_000,
    }));
    const next = from + 100 < all ? { next: String(from + 100) } : {};
    await route.fulfill({ json: { items, ...next } });
  });
  await page.reload();
  await row(page, "Number 0").first().waitFor();
  const list = page.locator("nav[aria-label=Conversations]");
  for (let wanted = 1_000; wanted <= 3_000; wanted += 1_000) {
    await expect
      .poll(async () => {
        await list.evaluate((element) => {
          element.scrollTop = element.scrollHeight;
        });
        return await list.evaluate((element) => element.scrollHeight);
      })
      .toBeGreaterThan(wanted * 36);
  }
  await expect.poll(() => page.locator(".conversation-row").count()).toBeLessThan(80);
});

test("exported HTML file has conversation and timeline, is self-contained and runs nothing", async () => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.user({}, own);
  const { page } = user;
  await user.send("Compare the weather in Paris, London and Tokyo");
  await user.settled();
  const title = (await page.getByRole("heading", { level: 1 }).textContent()) ?? "";
  await menuOf(page, title);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export: HTML" }).click();
  const download = await saved;
  expect(download.suggestedFilename()).toMatch(/^Compare the weather.*\.html$/);
  const text = await readFile(await download.path(), "utf8");
  expect(text).not.toMatch(/<script|<button|javascript:|blob:|\bon[a-z]+=/i);
  expect(text).toContain("default-src 'none'");

  const reader = await fixture.anonymous({ colorScheme: "dark" });
  // Without a server: the file is opened locally.
  await reader.page.setContent(text);
  await reader.page.getByRole("heading", { level: 1 }).waitFor();
  await expect.poll(() => reader.page.locator("details.card").count()).toBe(3);
  await reader.page.locator("details.card > summary").first().click();
  await reader.page.getByText("demo.weather").first().waitFor();
  await reader.page.locator("summary").filter({ hasText: "Timeline" }).click();
  await expect.poll(() => reader.page.locator(".waterfall tbody tr").count()).toBeGreaterThan(2);
  await reader.picture("exported-html");
  const saved2 = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export: JSONL" }).click();
  expect((await saved2).suggestedFilename()).toMatch(/\.jsonl$/);
  const saved3 = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export: Markdown" }).click();
  expect((await saved3).suggestedFilename()).toMatch(/\.md$/);
});

/** Creates a link in the dialog of a row. */
async function linkTo(page: Page, title: string): Promise<string> {
  await menuOf(page, title);
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByRole("button", { name: "Create link" }).click();
  const link = page.getByRole("textbox", { name: "Link", exact: true });
  await expect.poll(() => link.inputValue()).toMatch(/^http/);
  return await link.inputValue();
}

test("shared link shows the conversation without a key until it is revoked", async () => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.user({}, own);
  const { page } = user;
  await user.send("Compare the weather in Paris, London and Tokyo");
  await user.settled();
  const title = (await page.getByRole("heading", { level: 1 }).textContent()) ?? "";
  const link = await linkTo(page, title);
  expect(new URL(link).origin).toBe(own.url);
  await user.picture("share");
  expect(await user.violations()).toEqual([]);

  const reader = await fixture.anonymous();
  const requests: string[] = [];
  reader.page.on("request", (request) => requests.push(request.url()));
  await reader.page.goto(link);
  await reader.page.getByRole("heading", { name: title, level: 1 }).waitFor();
  await reader.page.locator("details.card").first().waitFor();
  expect(await reader.page.locator("textarea, nav").count()).toBe(0);
  await reader.page.locator("details.card > summary").first().click();
  await reader.picture("shared");
  expect(await reader.violations()).toEqual([]);
  // No request contains the secret, and no sign-in was needed.
  const secret = new URL(link).hash.slice(1);
  expect(requests.filter((url) => url.includes(secret))).toEqual([]);
  expect(requests.filter((url) => url.includes("/v1/")).map((url) => new URL(url).pathname)).toEqual([
    "/v1/shared",
  ]);

  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.goto(`${own.url}/settings`);
  const links = page.getByRole("region", { name: "Shared links" });
  await links.getByRole("button", { name: /^Revoke the link/ }).click();
  await links.getByRole("button", { name: "Really revoke?" }).click();
  await links.getByText("You have shared nothing").waitFor();
  await reader.page.reload();
  await reader.page.getByRole("heading", { name: "This link shows nothing" }).waitFor();
  expect(await reader.violations()).toEqual([]);
  await reader.page.goto(`${own.url}/s/absent`);
  await reader.page.getByRole("heading", { name: "This link shows nothing" }).waitFor();
});

/** Texts that must never become markup. */
const HOSTILE = [
  "<img src=x onerror=alert(1)>",
  "<script>alert(1)</script>",
  "[a](javascript:alert(1))",
  "![a](https://evil.example/x.png)",
  "<svg onload=alert(1)><iframe srcdoc='<script>parent.alert(1)</script>'>",
  "</style><script>alert(1)</script>",
  "$\\href{javascript:alert(1)}{x}$",
];

test("shared and exported conversations run and load nothing", async () => {
  const own = await fixture.ownServer(Server.start());
  const client = await own.client();
  const id = await imported(client, HOSTILE.join(" ").slice(0, 190), [
    HOSTILE.join("\n\n"),
    HOSTILE.join("\n\n"),
  ]);
  const path = { conversation_id: id };
  const { link } = await client.call("POST /v1/conversations/{conversation_id}/shares", { path, body: {} });
  const reader = await fixture.anonymous();
  let dialogs = 0;
  reader.page.on("dialog", (dialog) => {
    dialogs += 1;
    void dialog.dismiss();
  });
  await reader.page.goto(link);
  await reader.page.getByRole("article").nth(1).waitFor();
  const foreign = "img[src^=http], iframe, [onerror], [onload], a[href^=javascript]";
  expect(await reader.page.locator(foreign).count()).toBe(0);

  const user = await fixture.user({}, own, `/c/${id}`);
  const { page } = user;
  await page.locator(".conversation-row").hover();
  await page.locator(".conversation-row button").click();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export: HTML" }).click();
  const file = await fixture.anonymous();
  await file.page.setContent(await readFile(await (await saved).path(), "utf8"));
  await file.page.getByRole("article").nth(1).waitFor();
  expect(await file.page.locator(foreign).count()).toBe(0);
  expect(await file.page.locator("script").count()).toBe(0);
  expect(dialogs).toBe(0);
});

test.each<[string, BrowserOptions]>([
  ["zh-dark", { locale: "zh-CN", colorScheme: "dark" }],
  ["phone", { width: 390, height: 844 }],
  ["phone-zh-dark", { locale: "zh-CN", colorScheme: "dark", width: 390, height: 844 }],
])("conversations are complete and readable: %s", async (name, kind) => {
  const own = await fixture.ownServer(Server.start());
  const client = await own.client();
  await imported(client, "巴黎三日行程", ["你好", "好的。"]);
  await imported(client, "Trip to Paris and a title that is longer than a row of the list is wide", [
    "Hello",
    "Hi",
  ]);
  const user = await fixture.user(kind, own);
  const { page } = user;
  const isPhone = (kind.width ?? 1280) < 720;
  if (isPhone) await page.locator("header button").first().click();
  await page.locator(".conversation-row").first().waitFor();
  await check(user, `conversations-${name}`);
  await page.locator(".conversation-row").first().hover();
  await page.locator(".conversation-row button").first().click();
  await page.locator(".menu-facts").getByText(/\d/).first().waitFor();
  await check(user, `conversation-menu-${name}`);
  await page.locator(".menu-item").nth(4).click();
  await page.locator("dialog .primary").click();
  await page.locator("dialog input[readonly]").waitFor();
  await check(user, `share-${name}`);
  const link = await page.locator("dialog input[readonly]").inputValue();
  const reader = await fixture.anonymous(kind);
  await reader.page.goto(link);
  await reader.page.getByRole("article").nth(1).waitFor();
  await check(reader, `shared-${name}`);
});

async function check(user: BrowserUser, name: string): Promise<void> {
  const { page } = user;
  await expect
    .poll(() => page.evaluate("document.documentElement.scrollWidth <= innerWidth"), { message: name })
    .toBe(true);
  await user.picture(name);
  expect(await user.violations(), name).toEqual([]);
}
