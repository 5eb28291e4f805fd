// Saved prompts in the composer.

import type { Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import type { BrowserOptions } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() =>
  Server.scripted([
    { when: { contains: "A report about tea for cats." }, does: [{ say: "Cats like tea." }] },
    { does: [{ say: "What was that?" }] },
  ]),
);

/** Each test begins without prompts. */
beforeEach(async () => {
  const client = await fixture.server.client();
  const { items } = await client.call("GET /v1/saved-prompts");
  for (const { name } of items) await client.call("DELETE /v1/saved-prompts/{name}", { path: { name } });
});

const field = (page: Page) => page.locator("form textarea").last();
const dialog = (page: Page) => page.locator("dialog.prompts");

test("prompt is created, chosen by keyboard, filled in, edited and deleted", async () => {
  const user = await fixture.user();
  const { page } = user;
  await page.getByRole("button", { name: "Saved prompts" }).click();
  await dialog(page).getByText("Prompts that you save are here").waitFor();
  await dialog(page).getByRole("button", { name: "New prompt" }).click();
  await page.getByLabel("Name", { exact: true }).fill("weekly report");
  await dialog(page).locator("textarea").fill("A report about {{topic}} for {{audience}}.");
  await user.picture("prompt-editor");
  expect(await user.violations()).toEqual([]);
  await dialog(page).getByRole("button", { name: "Save", exact: true }).click();
  await dialog(page).getByRole("button", { name: "Edit “weekly report”" }).waitFor();
  await user.picture("prompts");
  expect(await user.violations()).toEqual([]);
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "detached" });

  // In the command menu, by keyboard.
  await field(page).fill("/weekly");
  const option = page.getByRole("option", { name: /weekly report/, selected: true });
  await option.waitFor();
  await user.picture("prompt-menu");
  expect(await user.violations()).toEqual([]);
  await page.keyboard.press("Enter");
  const focus = page.locator(":focus");
  await dialog(page).getByLabel("topic").and(focus).waitFor();
  await page.keyboard.type("tea");
  await page.keyboard.press("Enter");
  await dialog(page).getByLabel("audience").and(focus).waitFor();
  await page.keyboard.type("cats");
  await user.picture("prompt-filling");
  expect(await user.violations()).toEqual([]);
  await page.keyboard.press("Enter");
  await dialog(page).waitFor({ state: "detached" });
  await expect.poll(() => field(page).inputValue()).toBe("A report about tea for cats.");
  await field(page).and(focus).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".part[data-kind=text]").filter({ hasText: "Cats like tea." }).waitFor();
  await user.settled();

  // Stored for the user, not for the browser.
  const other = await fixture.user();
  await other.page.getByRole("button", { name: "Saved prompts" }).click();
  await dialog(other.page).getByRole("button", { name: "Edit “weekly report”" }).click();
  await other.page.getByLabel("Name", { exact: true }).fill("greeting");
  await dialog(other.page).locator("textarea").fill("Good morning!");
  await other.page.keyboard.press("Tab");
  await dialog(other.page).getByRole("button", { name: "Save", exact: true }).click();
  // A prompt without placeholders is inserted at the caret.
  await dialog(other.page).getByRole("button", { name: "Edit “greeting”" }).waitFor();
  await dialog(other.page).getByRole("searchbox").fill("morning");
  await other.page.keyboard.press("Enter");
  await dialog(other.page).waitFor({ state: "detached" });
  await expect.poll(() => field(other.page).inputValue()).toBe("Good morning!");

  await page.getByRole("button", { name: "Saved prompts" }).click();
  await dialog(page).getByRole("button", { name: "Edit “greeting”" }).click();
  await dialog(page).getByRole("button", { name: "Delete", exact: true }).click();
  await dialog(page).getByRole("button", { name: "Delete “greeting” for good" }).click();
  await dialog(page).getByText("Prompts that you save are here").waitFor();
});

test("text of the field becomes a prompt, and a concurrent edit is not lost", async () => {
  const user = await fixture.user();
  const { page } = user;
  await field(page).fill("Explain it to a child.");
  await page.getByRole("button", { name: "Saved prompts" }).click();
  await dialog(page).getByRole("button", { name: "New prompt" }).click();
  await expect.poll(() => dialog(page).locator("textarea").inputValue()).toBe("Explain it to a child.");
  const client = await fixture.server.client();
  await client.call("PUT /v1/saved-prompts/{name}", { path: { name: "child" }, body: { text: "Taken." } });
  await page.getByLabel("Name", { exact: true }).fill("child");
  await page.keyboard.press("Enter");
  await dialog(page).getByText("there is a saved prompt `child` already").waitFor();
  await page.getByLabel("Name", { exact: true }).fill("for a child");
  await page.keyboard.press("Enter");
  await dialog(page).getByRole("button", { name: "Edit “for a child”" }).waitFor();
  for (const name of ["child", "for a child"])
    await client.call("DELETE /v1/saved-prompts/{name}", { path: { name } });
});

test("commands and prompts are one list, and the active row is scrolled into view", async () => {
  const client = await fixture.server.client();
  const names = Array.from({ length: 12 }, (_, at) => `prompt ${String(at).padStart(2, "0")}`);
  for (const name of names)
    await client.call("PUT /v1/saved-prompts/{name}", { path: { name }, body: { text: `Text of ${name}` } });
  const user = await fixture.user();
  const { page } = user;
  await field(page).fill("/");
  await page.getByRole("option", { name: /prompt 11/ }).waitFor();
  await expect
    .poll(() => page.locator(".composer-menu [role=option]").first().textContent())
    .toContain("/new");
  await page.keyboard.press("ArrowUp");
  const last = page.getByRole("option", { name: /prompt 11/, selected: true });
  await last.waitFor();
  await expect
    .poll(() =>
      last.evaluate((option) => {
        const [own, list] = [option.getBoundingClientRect(), option.parentElement?.getBoundingClientRect()];
        return list !== undefined && own.top >= list.top && own.bottom <= list.bottom;
      }),
    )
    .toBe(true);
  await user.picture("menu-long");
  expect(await user.violations()).toEqual([]);
  await page.keyboard.press("Enter");
  await expect.poll(() => field(page).inputValue()).toBe("Text of prompt 11");
  // The agent's system prompt is in its settings.
  await field(page).fill("/system");
  await page.getByRole("option", { name: /\/system/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/agents?agent=default");
  for (const name of names) await client.call("DELETE /v1/saved-prompts/{name}", { path: { name } });
});

test.each<[string, BrowserOptions]>([
  ["zh-dark", { locale: "zh-CN", colorScheme: "dark" }],
  ["phone", { width: 390, height: 844 }],
  ["wide", { width: 1440, height: 900 }],
])("prompt library, %s", async (name, kind) => {
  const client = await fixture.server.client();
  const path = { name: "weekly report" };
  await client.call("PUT /v1/saved-prompts/{name}", { path, body: { text: "About {{topic}}, in brief." } });
  const user = await fixture.user(kind);
  const { page } = user;
  await page.locator(".composer-row button[aria-haspopup=dialog]").click();
  await dialog(page).locator("[data-row]").waitFor();
  await user.picture(`prompts-${name}`);
  expect(await user.violations()).toEqual([]);
  await dialog(page).locator("[data-row]").click();
  await dialog(page).locator("textarea").waitFor();
  await user.picture(`prompt-filling-${name}`);
  expect(await user.violations()).toEqual([]);
  await client.call("DELETE /v1/saved-prompts/{name}", { path });
});
