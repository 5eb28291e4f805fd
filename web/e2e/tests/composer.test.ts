// First screen, choice of the model, commands and drafts.

import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import type { BrowserOptions } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

/** Two upstreams that say their names; the second agent has a model of its own. */
const fixture = ServerFixture.of(() =>
  Server.withUpstreams(
    [{ does: [{ say: "I am the first." }] }],
    [{ does: [{ say: "I am the second." }] }],
    `[agents.default]
model = "one/alpha"
tool_call = { enabled = true }
[agents.other]
model = "two/gpt-4o"
`,
  ),
);

const answer = (page: Page, text: string) =>
  page.locator(".part[data-kind=text]").filter({ hasText: text }).last();

test("a model is chosen for the messages to come, and an answer is made again by another one", async () => {
  const user = await fixture.user();
  const { page } = user;
  const button = page.locator(".picker-button");
  await expect.poll(() => button.textContent()).toBe("one/alpha");
  await user.send("Who are you?");
  await answer(page, "I am the first.").waitFor();
  await user.settled();

  const picker = await user.openPicker();
  const row = (name: string | RegExp) => picker.getByRole("button", { name }).first();
  await expect.poll(() => row(/^one\/alpha/).getAttribute("aria-current")).toBe("true");
  await row(/^two\/gpt-4o.*128k context/).waitFor();
  await expect.poll(() => row(/^two\/gpt-4o/).textContent()).toContain("Images");
  await user.picture("picker");
  expect(await user.violations()).toEqual([]);
  // Enter takes the first match.
  await picker.getByRole("searchbox").fill("gpt");
  await page.keyboard.press("Enter");
  await picker.waitFor({ state: "detached" });
  await expect.poll(() => button.textContent()).toBe("two/gpt-4o");
  await page.locator("textarea:focus").waitFor();
  await page.keyboard.type("And you?");
  await page.keyboard.press("Enter");
  await answer(page, "I am the second.").waitFor();
  await user.settled();

  // The choice applies from the next message on, also after a reload.
  await page.reload();
  await button.filter({ hasText: "two/gpt-4o" }).waitFor();
  const again = await user.openPicker();
  await again.getByText(/Last used/).waitFor();
  await again.getByRole("button", { name: "Regenerate the last answer with one/alpha" }).click();
  await page.getByText("2 of 2").waitFor();
  await expect.poll(() => page.locator("article").last().textContent()).toContain("I am the first.");
  await expect.poll(() => button.textContent()).toBe("two/gpt-4o");

  // Back to the agent's own model.
  await (await user.openPicker()).getByRole("button", { name: /^one\/alpha/ }).click();
  await expect.poll(() => page.evaluate("localStorage.getItem('throughline.model')")).toBe("");
});

test("a message to one agent is answered by that one alone", async () => {
  const user = await fixture.user();
  const { page } = user;
  const field = page.locator("textarea").first();
  await field.fill("@ot");
  const option = page.getByRole("option", { name: /@other/ });
  await option.waitFor();
  await page.keyboard.press("Tab");
  await expect.poll(() => field.inputValue()).toBe("@other ");
  await page.keyboard.type("Who are you?");
  await page.keyboard.press("Enter");
  await answer(page, "I am the second.").waitFor();
  await user.settled();
  await expect.poll(() => page.locator(".user-bubble").textContent()).toBe("Who are you?");
  await user.send("And now?");
  await answer(page, "I am the first.").waitFor();
});

test("commands are listed, chosen by keyboard, and anything else is a message", async () => {
  const user = await fixture.user();
  const { page } = user;
  const field = page.locator("textarea").first();
  await field.fill("/");
  await page.getByRole("option", { name: /\/new/ }).waitFor();
  // There is no answer to act upon yet.
  expect(await page.getByRole("option", { name: /\/retry/ }).count()).toBe(0);
  await page.keyboard.press("Escape");
  await page.getByRole("listbox").waitFor({ state: "detached" });
  await field.fill("/usr/bin is a folder");
  await page.keyboard.press("Enter");
  await answer(page, "I am the first.").waitFor();
  await user.settled();

  await field.fill("/r");
  await page.getByRole("option", { name: /\/retry/, selected: true }).waitFor();
  await expect
    .poll(() => field.getAttribute("aria-activedescendant"))
    .toBe(await page.getByRole("listbox").getByRole("option", { selected: true }).getAttribute("id"));
  await user.picture("commands");
  expect(await user.violations()).toEqual([]);
  await page.keyboard.press("Enter");
  await page.getByText("2 of 2").waitFor();
  await user.settled();
  await expect.poll(() => field.inputValue()).toBe("");

  const file = page.waitForEvent("download");
  await field.fill("/save");
  await page.getByRole("option", { name: /\/save/ }).click();
  const saved = readFileSync(await (await file).path(), "utf8");
  expect(saved).toContain("I am the first.");

  await field.fill("/model");
  await page.getByRole("option", { name: /\/model/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("dialog.picker").waitFor();
  await user.closePicker();
  await field.fill("/new");
  await page.getByRole("option", { name: /\/new/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "What can I do for you?" }).waitFor();
});

test("what was typed stays with its conversation until it is sent", async () => {
  const user = await fixture.user();
  const { page } = user;
  const field = page.locator("textarea").first();
  await user.send("The first one");
  await answer(page, "I am the first.").waitFor();
  await user.settled();
  const conversation = page.url();
  await field.fill("half a thought");
  await page.locator("main header").getByRole("link", { name: "New conversation" }).click();
  await page.getByRole("heading", { name: "What can I do for you?" }).waitFor();
  await expect.poll(() => field.inputValue()).toBe("");
  await field.fill("another thought");
  await page.goto(conversation);
  await answer(page, "I am the first.").waitFor();
  await expect.poll(() => field.inputValue()).toBe("half a thought");
  await page.keyboard.press("/");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator(".user-bubble").count()).toBe(2);
  await user.settled();
  await page.reload();
  await answer(page, "I am the first.").waitFor();
  await expect.poll(() => field.inputValue()).toBe("");
  await page.locator("main header").getByRole("link", { name: "New conversation" }).click();
  await page.getByRole("heading", { name: "What can I do for you?" }).waitFor();
  await expect.poll(() => field.inputValue()).toBe("another thought");
  // Signing out deletes all drafts.
  await page.goto(`${fixture.server.url}/settings`);
  await page.locator("main header").waitFor();
  await page.getByText("Signed in as").waitFor();
  await page.route("**/v1/**", (route) => route.fulfill({ status: 401, body: "{}" }));
  // Every further request is refused; the link may disappear before it is clicked.
  await page.evaluate("document.querySelector('a[href=\"/stats\"]')?.click()");
  await page.locator("#key").waitFor();
  await expect.poll(() => page.evaluate("localStorage.getItem('throughline.drafts')")).toBeNull();
});

test.each<[string, BrowserOptions]>([
  ["en", {}],
  ["zh-dark", { locale: "zh-CN", colorScheme: "dark" }],
  ["phone", { width: 390, height: 844 }],
  ["phone-zh-dark", { locale: "zh-CN", colorScheme: "dark", width: 390, height: 844 }],
])("the first screen: the field in the middle, and four examples that fit, %s", async (name, kind) => {
  const user = await fixture.user(kind);
  const { page } = user;
  const examples = page.locator(".first-examples li");
  await expect.poll(() => examples.count()).toBe(4);
  // This model has no demo tools, so no suggestion needs them.
  expect(await examples.allTextContents()).not.toContainEqual(expect.stringMatching(/Tokyo|东京/));
  const top = async (of: Locator): Promise<number> => (await of.boundingBox())?.y ?? Number.NaN;
  const field = page.locator("form").first();
  await expect.poll(async () => (await top(examples.first())) - (await top(field))).toBeGreaterThan(0);
  await expect.poll(() => top(field)).toBeLessThan((kind.height ?? 860) * 0.6);
  await user.picture(`first-run-${name}`);
  expect(await user.violations()).toEqual([]);
  await user.openPicker();
  await page.locator("dialog.picker [data-row]").first().waitFor();
  await user.picture(`picker-${name}`);
  expect(await user.violations()).toEqual([]);
});
