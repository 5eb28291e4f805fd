// Two users on one server: an admin adds the second one on the page, limits and removes them.

import { expect, test } from "vitest";
import type { BrowserOptions } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

/** A user with a key that was just created. */
async function withKey(key: string, path: string, options: BrowserOptions = {}) {
  const user = await fixture.anonymous(options);
  await user.page.goto(`${fixture.server.url}${path}#token=${key}`);
  await user.page.locator("main header").first().waitFor();
  return user;
}

test("admin adds a user with key and limit, and removes them with their data", async () => {
  const admin = await fixture.user({}, fixture.server, "/settings");
  const { page } = admin;
  const people = page.getByRole("region", { name: "People", exact: true });
  const own = people.getByRole("listitem").filter({ hasText: "local" });
  await own.getByText("You").waitFor();
  await own.getByText("Admin").waitFor();

  // An invalid name is refused, and can be corrected.
  await people.getByRole("button", { name: "Add a person" }).click();
  const name = people.getByRole("textbox", { name: "Name" });
  await name.fill("not a name");
  await name.press("Enter");
  await people.getByRole("alert").getByText("bad_name").waitFor();
  await name.fill("Bob");
  await name.press("Enter");
  const bob = people.locator("[data-people] > li").filter({ hasText: "bob" });
  await bob.getByRole("form", { name: "Limits of bob" }).waitFor();

  // An invalid limit is not sent.
  const perDay = bob.getByRole("textbox", { name: "Turns a day" }).first();
  await perDay.fill("two");
  await bob.getByText("A whole number, or nothing").waitFor();
  await expect.poll(() => bob.getByRole("button", { name: "Save limits" }).isDisabled()).toBe(true);
  await perDay.fill("1");
  await bob.getByRole("textbox", { name: "Tokens a month" }).fill("5,000,000");
  await bob.getByRole("button", { name: "Save limits" }).click();
  await bob.getByText("Limited to 1 turn a day · 5,000,000 tokens a month").waitFor();

  // The key is shown once.
  await bob.getByRole("button", { name: "New key" }).click();
  const form = bob.getByRole("form", { name: "New key" });
  await form.getByRole("textbox", { name: "Name of the key" }).fill("laptop");
  expect(await form.getByRole("checkbox", { name: "administer the server" }).count()).toBe(0);
  await form.getByRole("textbox", { name: "Expires after days" }).fill("30");
  await form.getByRole("textbox", { name: "Agents and models" }).fill("default");
  await admin.picture("people-key");
  await form.getByRole("button", { name: "Create key" }).click();
  const secret = (await bob.locator("[data-secret]").textContent()) ?? "";
  expect(secret).toMatch(/^tl_/);
  await bob.getByRole("button", { name: "Copy key" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe(secret);
  await admin.picture("people-secret");
  expect(await admin.violations()).toEqual([]);
  await bob.getByRole("button", { name: "Done" }).click();
  await expect.poll(() => page.getByText(secret).count()).toBe(0);
  await bob.getByText("Only default").waitFor();
  await bob.getByText(/^chat · Never used · Expires/).waitFor();

  // Models of the key are edited later.
  await bob.getByRole("button", { name: "Limits and models of key laptop" }).click();
  const change = bob.getByRole("form", { name: "Limits and models of key laptop" });
  await change.getByRole("textbox", { name: "Agents and models" }).fill("");
  await change.getByRole("textbox", { name: "Turns a month" }).fill("20");
  await change.getByRole("button", { name: "Save" }).click();
  await bob.getByText("Limited to 20 turns a month").waitFor();
  await expect.poll(() => bob.getByText("Only default").count()).toBe(0);

  // Bob sees no users, and his limit applies.
  const bobUser = await withKey(secret, "/settings");
  await bobUser.page.getByRole("region", { name: "Account", exact: true }).getByText("bob").waitFor();
  await bobUser.page.getByText("Only an admin can list, create and revoke keys.").waitFor();
  expect(await bobUser.page.getByRole("region", { name: "People", exact: true }).count()).toBe(0);
  await bobUser.page.locator('a[href="/"]').first().click();
  await bobUser.send("What time is it?");
  await bobUser.settled();
  await bobUser.type("And now?");
  await bobUser.page.getByRole("alert").filter({ hasText: /limit/i }).waitFor();
  await bobUser.picture("people-limit");
  await page.reload();
  await bob.getByText(/^Today 1 turn, [\d,]+ tokens/).waitFor();

  // A removed user is signed out at once; the dialog says what is deleted.
  await bob.getByRole("button", { name: "Manage bob" }).click();
  await bob.getByRole("button", { name: "Remove bob" }).click();
  await bob.getByRole("radio", { name: /^Delete the data/ }).check();
  await bob.getByText("Conversations, files, agents, remembered answers and usage are deleted.").waitFor();
  await admin.picture("people-removal");
  expect(await admin.violations()).toEqual([]);
  await bob.getByRole("button", { name: "Remove bob and delete the data" }).click();
  await people.getByText("bob was removed, with 1 conversation and 0 files.").waitFor();
  await expect.poll(() => bob.count()).toBe(0);
  await bobUser.page.reload();
  await bobUser.page.locator("#key").waitFor();
});

test("user removed without their data is restored, and can become an admin", async () => {
  const admin = await fixture.user({ locale: "zh-CN", colorScheme: "dark" }, fixture.server, "/settings");
  const { page } = admin;
  const client = await fixture.server.client();
  await client.call("POST /v1/users", { body: { name: "ann" } });
  const { key } = await client.call("POST /v1/keys", { body: { name: "phone", user: "ann" } });
  await page.reload();
  const people = page.getByRole("region", { name: "用户", exact: true });
  const ann = people.locator("[data-people] > li").filter({ hasText: "ann" });
  await ann.getByRole("button", { name: "管理 ann" }).click();
  await ann.getByRole("checkbox", { name: /管理服务器/ }).click();
  await ann.getByText("管理员", { exact: true }).waitFor();
  await ann.getByRole("listitem").filter({ hasText: "phone" }).waitFor();
  await admin.picture("people-zh-dark");
  expect(await admin.violations()).toEqual([]);
  await ann.getByRole("button", { name: "移除 ann" }).click();
  await ann.getByRole("button", { name: "移除 ann" }).click();
  await people.getByText("已移除 ann，吊销了 1 个密钥。").waitFor();
  await ann.getByText("已移除").waitFor();
  const removed = await fixture.anonymous({ locale: "zh-CN" });
  await removed.page.goto(`${fixture.server.url}/settings#token=${key}`);
  await removed.page.getByRole("alert").getByText("密钥无效或已被吊销。").waitFor();
  await ann.getByRole("button", { name: "管理 ann" }).click();
  await ann.getByRole("button", { name: "恢复 ann" }).click();
  await ann.getByRole("checkbox", { name: /管理服务器/ }).waitFor();
});

test.each<[string, BrowserOptions]>([
  ["phone", { width: 390, height: 844 }],
  ["phone-zh-dark", { locale: "zh-CN", colorScheme: "dark", width: 390, height: 844 }],
])("users are managed on a phone: %s", async (name, options) => {
  const client = await fixture.server.client();
  const carl = `carl-${name}`;
  await client.call("POST /v1/users", { body: { name: carl, limits: { turns_per_day_max: 5_000 } } });
  const admin = await fixture.user(options, fixture.server, "/settings");
  const { page } = admin;
  const row = page.locator("[data-people] > li").filter({ hasText: carl });
  await row.getByRole("button").first().click();
  await row.locator("form").first().waitFor();
  await row.locator("form").first().scrollIntoViewIfNeeded();
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  await admin.picture(`people-${name}`);
  expect(await admin.violations()).toEqual([]);
});
