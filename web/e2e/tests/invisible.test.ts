import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

/** A date that a browser would show as `42-11-6202`, and a name that looks like `note`. */
const TURNED = "\u202e2026-11-24";
const NAMED = "no\u200bte";
/** Escaped form of these. */
const SHOWN = "\\u202e2026-11-24";

const given = (when: string) => ({ title: "Tea", when, [NAMED]: "\u2066x\u{e0041}" });
const call = (when: string) => ({ call: { name: "demo_calendar", arguments: given(when) } });

const fixture = ServerFixture.of(() =>
  Server.scripted([
    { when: { contains: "first", step: 1 }, does: [call("2026-11-24")] },
    { when: { contains: "next", step: 1 }, does: [call(TURNED)] },
    { does: [{ say: `Noted for ${TURNED}.` }] },
  ]),
);

test("approved call is shown exactly: approval, head, diff, edit, history, tester, title", async () => {
  const user = await fixture.user();
  const { page } = user;
  const question = page.getByRole("group", { name: /wants to run/ });

  await user.send("first");
  await question.waitFor();
  await page.getByRole("button", { name: /^Approve/ }).click();
  await user.settled();

  await user.send(`next ${TURNED}`);
  await question.waitFor();
  await expect.poll(() => question.locator(".asked-fields dd").nth(1).innerText()).toBe(SHOWN);
  await question.getByRole("button", { name: "Raw" }).click();
  const shown = await question.locator("pre").innerText();
  expect(shown).toContain(`"when": "${SHOWN}"`);
  expect(JSON.parse(shown)).toEqual(given(TURNED));
  await expect
    .poll(() => question.locator("pre .unseen").allInnerTexts())
    .toEqual(["\\u202e", "\\u200b", "\\u2066", "\\udb40\\udc41"]);
  const head = page.locator(".card", { has: question }).locator(".card-head");
  await expect.poll(() => head.locator(".summary").innerText()).toContain(`when: ${SHOWN}`);
  await expect.poll(() => question.locator(".changes").innerText()).toContain(`"2026-11-24" → "${SHOWN}"`);
  await user.picture("invisible");
  await user.inTheme("dark");
  await user.picture("invisible-dark");
  expect(await user.violations()).toEqual([]);

  // The escapes are edited, and come back as the original.
  await page.getByRole("button", { name: "Edit arguments" }).click();
  const field = page.getByRole("textbox", { name: "Arguments" });
  const text = await field.inputValue();
  expect(text).toContain(`"when": "${SHOWN}"`);
  await field.fill(text.replace("Tea", "Cake"));
  await page.getByRole("button", { name: "Approve with edits" }).click();
  await user.settled();
  const client = await fixture.server.client();
  const kept = async (): Promise<unknown> => {
    const { items } = await client.call("GET /v1/history/calls", { query: { limit: 1 } });
    return JSON.parse(items[0]?.arguments ?? "null");
  };
  await expect.poll(kept).toEqual({ ...given(TURNED), title: "Cake" });
  await page
    .locator(".part[data-kind=text]")
    .filter({ hasText: `Noted for ${SHOWN}.` })
    .first()
    .waitFor();

  await page.goto(`${fixture.server.url}/history/calls`);
  await page.getByText(SHOWN).first().click();
  await page
    .locator("pre", { hasText: `"when": "${SHOWN}"` })
    .first()
    .waitFor();
  await user.picture("invisible-history");

  const args = encodeURIComponent(JSON.stringify({ title: "Tea", when: TURNED }));
  await page.goto(`${fixture.server.url}/tester#tool=demo.calendar&arguments=${args}`);
  await expect
    .poll(() =>
      page.locator("textarea, input").evaluateAll((all) => all.map((one) => "value" in one && one.value)),
    )
    .toContain(`"${SHOWN}"`);
  expect(await everything(page)).not.toMatch(/[\u200b\u202e\u2066]/);
});

test("conversation has its exact title in the tab, the list and the header", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send(`${TURNED} is the day`);
  await user.settled();
  await expect.poll(() => page.title()).toContain(`${SHOWN} is the day`);
  await page.reload();
  await expect.poll(() => page.title()).toContain(`${SHOWN} is the day`);
  expect(await everything(page)).not.toMatch(/[\u200b\u202e\u2066]/);
});

/** All visible and accessible texts of the page. */
async function everything(page: { evaluate(script: string): Promise<unknown> }): Promise<string> {
  return String(await page.evaluate("document.title + document.documentElement.outerHTML"));
}
