// Approvals and the effect of each answer.

import { expect, test } from "vitest";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const entry = (title: string): Rule => ({
  times: 1,
  does: [{ call: { name: "demo_calendar", arguments: { title, when: "2026-11-23T08:00" } } }],
});
const say = (text: string): Rule => ({ times: 1, does: [{ say: text }] });

const fixture = ServerFixture.of(() => Server.start());

/** Answers the first call; returns whether the second one, with other arguments, asks again. */
async function asksAgain(choice: string, onlyThese: boolean): Promise<boolean> {
  const rules = [entry("Tea"), say("One."), entry("Lunch"), say("Two.")];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("first");
  const question = page.getByRole("group", { name: /wants to run/ });
  // By keyboard, as soon as the shortcut is shown.
  await question.locator("kbd").first().waitFor();
  await page.keyboard.press("F6");
  await page.keyboard.press("Shift+A");
  await question.getByText(/never ask again/).waitFor();
  if (onlyThese) await question.getByRole("checkbox").check();
  await user.picture(`approval-lasting-${onlyThese ? "these" : "any"}`);
  expect(await user.violations()).toEqual([]);
  await question.getByRole("button", { name: choice }).click();
  await page.locator(".markdown", { hasText: "One." }).waitFor();
  await user.settled();
  await user.send("second");
  const done = page.locator(".card[data-status=success]").nth(1);
  await question.or(done).first().waitFor();
  return (await question.count()) > 0;
}

test("tool allowed in this conversation does not ask again, with any arguments", async () => {
  expect(await asksAgain("This tool in this conversation", false)).toBe(false);
});

test("tool always allowed with these arguments asks for others", async () => {
  expect(await asksAgain("Always this tool", true)).toBe(true);
});

test("approval is a sentence with fields, with JSON on demand and no internal terms", async () => {
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted([entry("Tea"), say("One.")])));
  const { page } = user;
  await user.send("first");
  const question = page.getByRole("group", { name: /wants to run/ });
  await question.waitFor();
  await expect.poll(() => question.locator(".asked-fields dt").allInnerTexts()).toEqual(["title", "when"]);
  await expect
    .poll(() => question.locator(".asked-fields dd").allInnerTexts())
    .toEqual(["Tea", "2026-11-23T08:00"]);
  expect(await question.innerText()).not.toContain("effect:");
  await user.picture("approval-fields");
  await question.getByRole("button", { name: "Raw" }).click();
  await expect.poll(() => question.locator("pre").innerText()).toContain('"title": "Tea"');
  await page.setViewportSize({ width: 390, height: 844 });
  await user.inTheme("dark");
  await user.picture("approval-fields-phone-dark");
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
});

test("lasting denial by keyboard denies the next call without asking", async () => {
  const rules = [entry("Tea"), say("One."), entry("Lunch"), say("Two.")];
  const server = await fixture.ownServer(Server.scripted(rules));
  const user = await fixture.user({}, server);
  const { page } = user;
  await user.send("first");
  const question = page.getByRole("group", { name: /wants to run/ });
  await question.locator("kbd").first().waitFor();
  await page.keyboard.press("F6");
  await page.keyboard.press("Shift+D");
  const reason = question.getByRole("textbox", { name: "Reason" });
  await question.getByText(/denied from now on without asking you/).waitFor();
  await expect
    .poll(() => question.getByRole("button", { name: "More ways to deny" }).getAttribute("aria-expanded"))
    .toBe("true");
  await page.keyboard.type("Not on Sundays");
  await user.picture("approval-denial-lasting");
  expect(await user.violations()).toEqual([]);
  // Tab order: Deny, Deny and stop, this turn, this conversation.
  for (let presses = 0; presses < 4; presses++) await page.keyboard.press("Tab");
  await expect.poll(() => page.locator(":focus").innerText()).toBe("Deny in this conversation");
  await page.keyboard.press("Enter");
  await page.locator(".markdown", { hasText: "One." }).waitFor();
  await page.locator(".card[data-status=denied]").getByText("Not on Sundays").waitFor();
  await user.settled();
  await user.send("second");
  await page.locator(".markdown", { hasText: "Two." }).waitFor();
  await page.locator(".card[data-status=denied]").nth(1).waitFor();
  expect(await question.count()).toBe(0);
  const { items } = await (await server.client()).call("GET /v1/remembered", { query: { everywhere: true } });
  expect(items.map(({ rule }) => [rule?.decision, rule?.for_arguments])).toEqual([["deny", "any"]]);
  await expect.poll(() => reason.count()).toBe(0);
});

test.each([
  ["en-GB", "light", 1280, /wants to run/, "More ways to deny", "Deny and stop"],
  ["zh-CN", "dark", 390, /想运行/, "更多拒绝方式", "拒绝并停止"],
] as const)("denial with stop ends the turn without another model call: %s", async (...kind) => {
  const [locale, colorScheme, width, wants, more, stop] = kind;
  const server = await fixture.ownServer(Server.scripted([entry("Tea"), say("Never reached.")]));
  const user = await fixture.user({ locale, colorScheme, width, height: 860 }, server);
  const { page } = user;
  await user.send("first");
  const question = page.getByRole("group", { name: wants });
  await question.getByRole("button", { name: more }).click();
  await question.getByRole("button", { name: stop }).waitFor();
  await user.picture(`approval-deny-and-stop-${locale}`);
  expect(await user.violations()).toEqual([]);
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
  await question.getByRole("button", { name: stop }).click();
  await user.settled();
  await page.locator(".card[data-status=denied]").waitFor();
  expect(await page.getByText("Never reached.").count()).toBe(0);
  const client = await server.client();
  const { items } = await client.call("GET /v1/history/calls");
  const path = { turn_id: items[0]?.turn_id ?? "" };
  expect((await client.call("GET /v1/turns/{turn_id}", { path })).status).toBe("cancelled");
});
