// Animations during a reply, and their absence with reduced motion.

import { expect, test } from "vitest";
import type { Visitor } from "../browser.ts";
import { Gate } from "../gate.ts";
import { House } from "../house.ts";
import { Server } from "../server.ts";

const house = House.of(() => Server.start());

/** Records the words that fade in, and the number of elements of the text. */
async function watch({ page }: Visitor): Promise<void> {
  await page.evaluate(() => {
    const fading: string[] = [];
    (window as unknown as { fading: string[] }).fading = fading;
    const look = (): void => {
      const registry = CSS.highlights as unknown as ReadonlyMap<string, ReadonlySet<StaticRange>>;
      for (const range of registry.get("fresh-1") ?? []) {
        const text = range.startContainer.textContent ?? "";
        fading.push(text.slice(range.startOffset, range.endOffset));
      }
      requestAnimationFrame(look);
    };
    look();
  });
}

const faded = ({ page }: Visitor): Promise<string[]> =>
  page.evaluate(() => (window as unknown as { fading: string[] }).fading);

test("words that are written fade in, without an element of their own, and are then like any others", async () => {
  const somebody = await house.visitor({ motion: "no-preference" });
  const { page } = somebody;
  await watch(somebody);
  await somebody.say("What time is it?");
  await somebody.settled();
  await expect.poll(async () => (await faded(somebody)).join("").trim()).not.toBe("");
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

test("a word that fades is paler than it will be, in both themes", async () => {
  const gate = new Gate();
  const server = await house.own(Server.scripted([{ does: [{ say: "Here it is." }, gate.move] }]));
  const somebody = await house.visitor({ motion: "no-preference" }, server);
  const { page } = somebody;
  await somebody.say("hello");
  await page.locator(".part[data-kind=text]", { hasText: "Here it is." }).waitFor();
  for (const theme of ["light", "dark"] as const) {
    await somebody.inTheme(theme);
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
  await somebody.settled();
});

test("nothing fades for whoever wants no motion", async () => {
  const somebody = await house.visitor({ motion: "reduce" });
  await watch(somebody);
  await somebody.say("What time is it?");
  await somebody.page.locator(".card[data-status=success]").waitFor();
  await somebody.settled();
  expect(await faded(somebody)).toEqual([]);
});
