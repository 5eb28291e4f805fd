// Content that is not rendered because it is off the screen is still there: for find-in-page, for the selection, and for screen readers.

import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import { withScreenReader } from "../browser.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const TURNS = 16;
/** Several screens each, with a unique word. */
const rules: readonly Rule[] = Array.from({ length: TURNS }, (_, at) => ({
  when: { contains: `question ${at}.` },
  does: [{ say: Array.from({ length: 40 }, (_, line) => `needle${at}x${line} in a haystack`).join("\n\n") }],
}));
withScreenReader();
const fixture = ServerFixture.of(() => Server.scripted(rules));

/** The browser's find-in-page. */
declare global {
  interface Window {
    find(text: string): boolean;
  }
}

test("long conversation is found, selected and read as a whole", async () => {
  const client = await fixture.server.client();
  let conversation_id: string | undefined;
  for (let at = 0; at < TURNS; at += 1) {
    const turn = await client.start({
      ...(conversation_id && { conversation_id }),
      input: [{ type: "text", text: `question ${at}.` }],
    });
    conversation_id = turn.conversation_id ?? undefined;
    for await (const _ of turn.events);
  }
  const user = await fixture.user();
  const { page } = user;
  await page.goto(`${fixture.server.url}/c/${conversation_id}`);
  const articles = page.getByRole("article", { name: en.assistantMessage });
  await articles.first().waitFor();
  const older = page.getByRole("button", { name: en.olderTurns });
  while ((await articles.count()) < TURNS) {
    const shown = await articles.count();
    await older.click();
    await expect.poll(() => articles.count()).toBeGreaterThan(shown);
  }
  const isSeen = () =>
    page.evaluate(() => {
      const part = document.querySelector(".part[data-kind=text] p");
      return part?.checkVisibility({ contentVisibilityAuto: true });
    });
  // The end is visible: the beginning is not rendered.
  await page.keyboard.press("End");
  await articles.last().scrollIntoViewIfNeeded();
  await expect.poll(isSeen).toBe(false);

  const all = await page.evaluate(() => {
    const selection = getSelection();
    selection?.selectAllChildren(document.querySelector("article")?.closest("ol") ?? document.body);
    const text = selection?.toString() ?? "";
    selection?.removeAllRanges();
    return text;
  });
  for (let at = 0; at < TURNS; at += 1) expect(all).toContain(`needle${at}x39 in a haystack`);

  const debug = await page.context().newCDPSession(page);
  const read = async (): Promise<string> => {
    const { nodes } = await debug.send("Accessibility.getFullAXTree");
    return nodes.map(({ name }) => String(name?.value ?? "")).join("\n");
  };
  for (let at = 0; at < TURNS; at += 1) await expect.poll(read).toContain(`needle${at}x0 in a haystack`);

  await expect.poll(() => page.evaluate(() => window.find("needle0x7 "))).toBe(true);
  // It is scrolled into view, and rendered.
  await expect.poll(isSeen).toBe(true);
  await expect.poll(() => page.evaluate(() => getSelection()?.toString().trim())).toBe("needle0x7");
});
