// Rating of answers: thumbs, and a reason.

import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.scripted([{ does: [{ say: "Paris." }] }]));

test("rating of an answer with a reason survives a reload", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Capital of France?");
  await user.settled();
  const [good, bad] = [en.goodAnswer, en.badAnswer].map((name) => page.getByRole("button", { name }));
  await good?.click();
  await page.locator(`[aria-label="${en.goodAnswer}"][aria-pressed=true]`).waitFor();
  await bad?.click();
  await page.getByRole("textbox", { name: en.whatWasWrong }).fill("Too short");
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.request().postData()?.includes("Too short") === true),
    page.keyboard.press("Enter"),
  ]);
  expect(await answer.json()).toMatchObject({ value: "down", reason: "Too short" });
  await expect.poll(() => page.getByRole("textbox", { name: en.whatWasWrong }).count()).toBe(0);
  await page.reload();
  await page.locator(`[aria-label="${en.badAnswer}"][aria-pressed=true]`).waitFor();
  // A second press removes the rating.
  await bad?.click();
  await page.locator(`[aria-label="${en.badAnswer}"][aria-pressed=false]`).waitFor();
});
