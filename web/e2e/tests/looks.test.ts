// First impression of the page: names, fonts, colors.

import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import { zh } from "../../app/src/i18n/zh.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

const EXAMPLE = "Compare the weather in Paris, London and Tokyo";
const ENTRY = "把明天下午三点和小李开会记到日历里";

test("every view has its name in the rail, also on a phone", async () => {
  const user = await fixture.user();
  const { page } = user;
  const rail = page.getByRole("navigation", { name: en.navigation });
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    for (const name of [en.chat, en.tester, en.agents, en.history, en.metrics, en.settings]) {
      await expect
        .poll(() => rail.getByText(name, { exact: true }).isVisible(), { message: `${name} at ${width}` })
        .toBe(true);
    }
  }
});

test("Latin letters use the page's own font from the server", async () => {
  const user = await fixture.user();
  const { page } = user;
  const { family, isLoaded } = await page.evaluate(async () => {
    await document.fonts.ready;
    const family = getComputedStyle(document.body).fontFamily;
    const first = family.split(",")[0] ?? "";
    const isLoaded = [...document.fonts].some(
      (font) => first.includes(font.family.replaceAll('"', "")) && font.status === "loaded",
    );
    return { family, isLoaded };
  });
  expect(family).toMatch(/^"?Inter/);
  expect(isLoaded).toBe(true);
});

test("only messages with calls have a timeline, and finished calls show icons", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("hello");
  await user.settled();
  await expect.poll(() => page.locator(".thread.bare").count(), { message: "no call, no line" }).toBe(1);
  const line = await page
    .locator(".thread.bare")
    .evaluate((thread) => getComputedStyle(thread, "::before").display);
  expect(line).toBe("none");
  await user.send(EXAMPLE);
  await user.settled();
  await expect.poll(() => page.locator(".thread:not(.bare)").count()).toBe(1);
  const icons = page.locator(".calls .icons");
  await expect.poll(() => icons.locator("svg").count()).toBeGreaterThan(0);
  expect((await icons.textContent())?.trim(), "no letters in place of icons").toBe("");
});

test("surfaces are distinguishable in the dark", async () => {
  const user = await fixture.user({ colorScheme: "dark" });
  const lightness = await user.page.evaluate(() => {
    const probe = document.createElement("i");
    document.body.append(probe);
    const of = (name: string): number => {
      probe.className = "";
      probe.style.setProperty("color", `var(${name})`);
      const [r = 0, g = 0, b = 0] =
        getComputedStyle(probe)
          .color.match(/[\d.]+/g)
          ?.map(Number) ?? [];
      const linear = (value: number): number => {
        const one = value / 255;
        return one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
      };
      return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    };
    return [of("--sunken"), of("--bg"), of("--surface")];
  });
  const [sunken = 0, bg = 0, surface = 0] = lightness;
  expect(sunken).toBeLessThan(bg);
  expect((surface + 0.05) / (bg + 0.05), "as a contrast").toBeGreaterThan(1.1);
});

test("approval in Chinese has no English or internal terms", async () => {
  const user = await fixture.user({ locale: "zh-CN" });
  const { page } = user;
  await user.send(ENTRY);
  const card = page.locator(".card[data-status=awaiting_approval]");
  await card.getByRole("button", { name: zh.approve, exact: true }).waitFor();
  const shown = await card.innerText();
  expect(shown).not.toMatch(/effect:|write\b|external\b/);
  expect(shown).toMatch(/[\u4e00-\u9fff]/);
});
