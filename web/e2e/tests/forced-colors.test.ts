// With forced colors, states that are shown by backgrounds stay visible.

import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() =>
  Server.scripted([{ when: {}, does: [{ say: "I begin." }, { pause: 600_000 }] }]),
);

const styleOf = async (of: Locator, name: string, pseudo?: string): Promise<string> =>
  await of.evaluate(
    (element, [name, pseudo]) => getComputedStyle(element, pseudo).getPropertyValue(name ?? ""),
    [name, pseudo],
  );

test.each(["light", "dark"] as const)("forced colors hide no state: %s", async (colorScheme) => {
  const user = await fixture.user({ colorScheme });
  const { page } = user;
  await page.emulateMedia({ colorScheme, forcedColors: "active" });
  await page.locator("main").waitFor();
  const canvas = await styleOf(page.locator("body"), "background-color");

  await user.chooseMode("text");
  const modes = (await user.openPicker()).locator("fieldset.segments label");
  const chosen = await styleOf(modes.nth(1), "background-color");
  for (const at of [0, 2])
    await expect.poll(() => styleOf(modes.nth(at), "background-color")).not.toBe(chosen);
  await user.closePicker();
  const view = page.locator("nav a[aria-current=page]");
  await expect.poll(() => styleOf(view, "background-color")).toBe(chosen);

  await user.send("Go on");
  await page.locator(".part[data-kind=text]").waitFor();
  const stop = page.locator(".stop");
  await expect.poll(() => styleOf(stop, "border-top-width")).toBe("1px");
  await expect.poll(() => styleOf(stop, "border-top-color")).not.toBe(canvas);
  await expect.poll(() => styleOf(page.locator(".thread"), "background-color", "::before")).not.toBe(canvas);
  await user.picture(`forced-colors-${colorScheme}`);
  expect(await user.violations()).toEqual([]);
});
