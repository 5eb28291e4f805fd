// Every view by keyboard and by screen reader: tab stops, and the accessibility tree.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());
/** More stops than any view has. */
const STOPS_MAX = 150;

/** Removes what differs between runs: ids, numbers, times, dates. */
function steady(text: string): string {
  return text
    .replace(/- status: .*/g, "- status")
    .replace(/First token.*/g, "First token …")
    .replace(/\b(conv|turn|msg|call|key)_\w+/g, "$1_ID")
    .replace(/\b[0-9a-f]{16,}\b/g, "ID")
    .replace(/throughline-page-\w+/g, "FOLDER")
    .replace(/(?<!level=)\d+([.,:/]\d+)*( ?(ms|s|min|h|tok\/s)\b)?/g, "0")
    .replace(/"0"|0 ?%/g, "0")
    .replace(/\b[ap]m\b/gi, "HALF")
    .replace(/\b(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b/g, "DAY")
    .replace(/\b(Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)[a-z]*\b/g, "MONTH")
    .replace(/^(.{200}).+$/gm, "$1…");
}

/** Role and name of each tab stop, until the focus leaves the page or returns. */
async function stopsOf(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    document.body.tabIndex = -1;
    document.body.focus();
  });
  const stops: string[] = [];
  const seen = new Set<string>();
  while (stops.length < STOPS_MAX) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const one = document.activeElement;
      if (one === null || one === document.body) return undefined;
      const { outlineStyle, boxShadow, borderColor } = getComputedStyle(one);
      const all = [...document.querySelectorAll("*")];
      const label =
        one.getAttribute("aria-label") ?? one.getAttribute("placeholder") ?? one.textContent ?? "";
      return {
        at: all.indexOf(one),
        says: `${one.getAttribute("role") ?? one.localName}: ${label.replace(/\s+/g, " ").trim().slice(0, 60)}`,
        isMarked: outlineStyle !== "none" || boxShadow !== "none" || borderColor !== "",
      };
    });
    if (stop === undefined || seen.has(`${stop.at}`)) break;
    seen.add(`${stop.at}`);
    expect(stop.isMarked, `${stop.says} shows that it has the focus`).toBe(true);
    stops.push(steady(stop.says));
  }
  expect(stops.length).toBeLessThan(STOPS_MAX);
  return stops;
}

test.each([
  ["chat", "/", "textarea"],
  ["history", "/history", "table"],
  ["calls", "/history/calls", "table"],
  ["metrics", "/stats", "main h2, main h3"],
  ["agents", "/agents", "main input, main textarea"],
  ["tester", "/tester", "main input, main textarea"],
  ["settings", "/settings", "main :text('first start')"],
])("%s is usable by keyboard and screen reader", async (name, path, awaited) => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.user({}, own);
  const { page } = user;
  await user.send("What time is it?");
  await user.settled();
  if (name !== "chat") {
    await page.goto("about:blank");
    await page.goto(own.url + path);
  }
  await page.locator(awaited).first().waitFor();
  await page.evaluate("document.fonts.ready.then(() => undefined)");
  const tree = async () => `${steady(await page.locator("body").ariaSnapshot())}\n`;
  // Once everything is there; if that fails, the files below show what is missing.
  const written = await readFile(join(import.meta.dirname, `walks/${name}.tree.txt`), "utf8");
  await expect
    .poll(tree)
    .toBe(written)
    .catch(() => undefined);
  await expect(`${(await stopsOf(page)).join("\n")}\n`).toMatchFileSnapshot(`walks/${name}.keys.txt`);
  await expect(await tree()).toMatchFileSnapshot(`walks/${name}.tree.txt`);
});
