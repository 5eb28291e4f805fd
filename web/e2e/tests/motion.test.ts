// Animations during a reply, and their absence with reduced motion.

import { expect, test } from "vitest";
import type { BrowserUser } from "../browser.ts";
import { Gate } from "../gate.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

/** Records the words that fade in, and the number of elements of the text. */
async function watch({ page }: BrowserUser): Promise<void> {
  await page.evaluate(() => {
    const fading: string[] = [];
    (window as unknown as { fading: string[] }).fading = fading;
    const capture = (): void => {
      const registry = CSS.highlights as unknown as ReadonlyMap<string, ReadonlySet<StaticRange>>;
      for (const range of registry.get("fresh-1") ?? []) {
        const text = range.startContainer.textContent ?? "";
        fading.push(text.slice(range.startOffset, range.endOffset));
      }
      requestAnimationFrame(capture);
    };
    capture();
  });
}

const faded = ({ page }: BrowserUser): Promise<string[]> =>
  page.evaluate(() => (window as unknown as { fading: string[] }).fading);

test("new words fade in without elements of their own", async () => {
  const user = await fixture.user({ motion: "no-preference" });
  const { page } = user;
  await watch(user);
  await user.send("What time is it?");
  await user.settled();
  await expect.poll(async () => (await faded(user)).join("").trim()).not.toBe("");
  await expect
    .poll(() =>
      page.evaluate(() => {
        const registry = CSS.highlights as unknown as ReadonlyMap<string, ReadonlySet<StaticRange>>;
        return ["fresh-1", "fresh-2", "fresh-3"].map((name) => registry.get(name)?.size);
      }),
    )
    .toEqual([0, 0, 0]);
  await expect.poll(() => page.locator(".part[data-kind=text] :is(p, li) > span").count()).toBe(0);
});

test("fading word is paler at first, in both themes", async () => {
  const gate = new Gate();
  const server = await fixture.ownServer(Server.scripted([{ does: [{ say: "Here it is." }, gate.move] }]));
  const user = await fixture.user({ motion: "no-preference" }, server);
  const { page } = user;
  await user.send("hello");
  await page.locator(".part[data-kind=text]", { hasText: "Here it is." }).waitFor();
  for (const theme of ["light", "dark"] as const) {
    await user.inTheme(theme);
    const shades = () =>
      page.evaluate(() => {
        const text = document.querySelector(".part[data-kind=text] p") as Element;
        const colors = ["fresh-1", "fresh-2", "fresh-3"].map(
          (name) => getComputedStyle(text, `::highlight(${name})`).color,
        );
        return new Set(colors).size;
      });
    await expect.poll(shades, { message: "each stage is another shade" }).toBe(3);
  }
  gate.open();
  await user.settled();
});

test("reduced motion disables fading", async () => {
  const user = await fixture.user({ motion: "reduce" });
  await watch(user);
  await user.send("What time is it?");
  await user.page.locator(".card[data-status=success]").waitFor();
  await user.settled();
  expect(await faded(user)).toEqual([]);
});
