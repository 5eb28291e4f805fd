// A message from sending to its end: offline, without layout shifts, with remedies for failures.

import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import type { BrowserUser } from "../browser.ts";
import { Gate } from "../gate.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

const text = ({ page }: BrowserUser, words: string | RegExp) =>
  page.locator(".part[data-kind=text]").filter({ hasText: words });

/** Takes the network away from a loaded page; the renderer of messages loads a moment later than the rest. */
async function offline({ page }: BrowserUser): Promise<void> {
  await page.getByRole("list", { name: en.chat, exact: true }).waitFor({ state: "attached" });
  await page.context().setOffline(true);
}

/** Requests that begin a turn. */
function begun({ page }: BrowserUser): string[] {
  const keys: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && new URL(request.url()).pathname === "/v1/turns")
      keys.push(request.headers()["idempotency-key"] ?? "");
  });
  return keys;
}

test("offline message is sent once when the network is back", async () => {
  const user = await fixture.user();
  const { page } = user;
  const keys = begun(user);
  await offline(user);
  await user.send("What time is it?");
  await page.getByText(en.status.unsent).waitFor();
  await page.getByRole("article", { name: en.yourMessage }).getByText("What time is it?").waitFor();
  expect(await page.getByRole("alert").count(), "nothing has failed").toBe(0);
  await user.picture("unsent");
  // Visiting another view loses nothing.
  await page.getByRole("link", { name: en.history }).click();
  await page.getByRole("link", { name: en.chat }).click();
  await page.getByText(en.status.unsent).waitFor();
  await page.context().setOffline(false);
  await page.locator(".card[data-status=success]").waitFor();
  await user.settled();
  expect(keys.length).toBeGreaterThan(1);
  expect(new Set(keys).size, "the same request however often").toBe(1);
  await expect.poll(() => page.getByRole("article", { name: en.yourMessage }).count()).toBe(1);
  await expect.poll(() => new URL(page.url()).pathname).toMatch(/^\/c\//);
});

test("first screen works without its suggestions", async () => {
  const user = await fixture.anonymous();
  const { page } = user;
  await page.route("**/assets/suggestions-*.js", (route) => route.abort());
  await page.goto(`${fixture.server.url}/#token=${await fixture.server.key()}`);
  await page.getByRole("heading", { name: en.firstTitle }).waitFor();
  await page.locator(".first-examples").getByText(en.partFailed).waitFor();
  await user.send("What time is it?");
  await user.settled();
});

test("unsent message can be retracted, and returns to the field", async () => {
  const user = await fixture.user();
  const { page } = user;
  await offline(user);
  await user.send("Rather not");
  await page.getByRole("button", { name: en.unsend }).click();
  await page.getByRole("heading", { name: en.firstTitle }).waitFor();
  await expect.poll(() => page.locator("textarea").first().inputValue()).toBe("Rather not");
  await expect.poll(() => page.getByRole("article").count()).toBe(0);
  await page.context().setOffline(false);
  await user.send("Rather not");
  await user.settled();
  await expect.poll(() => page.getByRole("article", { name: en.yourMessage }).count()).toBe(1);
});

test("offline message during a turn waits, can be retracted, and arrives", async () => {
  const gate = new Gate();
  const rules: Rule[] = [
    { times: 1, does: [{ say: "First." }, gate.move, { say: " Done." }] },
    { does: [{ say: "Second." }] },
  ];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Go");
  await text(user, "First.").waitFor();
  await page.context().setOffline(true);
  const field = page.locator("textarea").first();
  await field.fill("and this");
  await field.press("Enter");
  await page.getByText(en.waitsForServer).waitFor();
  await page.getByRole("button", { name: en.unsend }).click();
  await expect.poll(() => field.inputValue()).toBe("and this");
  await page.keyboard.press("Enter");
  await page.getByText(en.waitsForServer).waitFor();
  await page.context().setOffline(false);
  await page.getByText(en.waitsForStep).waitFor();
  gate.open();
  await text(user, "Second.").waitFor();
  await user.settled();
  await expect.poll(() => page.getByText("and this", { exact: true }).count()).toBe(1);
});

test("turn causes no layout shift from its first word to after its end", async () => {
  const gate = new Gate();
  const rules: Rule[] = [
    {
      when: { has_result: false },
      does: [
        { think: "A thought." },
        { say: "I look at three places.\n\nThen I tell." },
        { call: { name: "demo_weather", arguments: { city: "Paris" } } },
        { call: { name: "demo_weather", arguments: { city: "Oslo" } } },
        { call: { name: "demo_weather", arguments: { city: "Rome" } } },
      ],
    },
    { does: [{ say: "All three are fine." }, gate.move, { say: "\n\nThat is all." }] },
  ];
  const user = await fixture.user({ motion: "reduce" }, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  // The model's name appears in the header a moment later.
  await page.locator(".picker-button").waitFor();
  await user.send("Hello");
  await page.getByRole("article", { name: en.assistantMessage }).waitFor();
  await page.evaluate(() => document.fonts.ready.then(() => undefined));
  await page.evaluate(() => {
    const shifts: string[] = [];
    (window as unknown as { shifts: string[] }).shifts = shifts;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        const { value, sources } = entry as unknown as {
          value: number;
          sources: { node: Node | null; previousRect: DOMRect; currentRect: DOMRect }[];
        };
        // A pseudo-element has no node, nor has a removed element: the caret, which moves with the text before it, is recognized
        // by its size.
        const isCaret = ({ node, previousRect, currentRect }: (typeof sources)[number]) =>
          node === null && [previousRect, currentRect].every((at) => at.width <= 12 && at.height <= 24);
        if (sources.length > 0 && sources.every(isCaret)) continue;
        const what = sources.map(({ node, previousRect, currentRect }) => {
          const element = node instanceof Element ? node : node?.parentElement;
          const [from, to] = [previousRect, currentRect].map(
            (at) => `${at.x},${at.y} ${at.width}x${at.height}`,
          );
          return `${element?.tagName}.${element?.className} ${from} -> ${to}`;
        });
        shifts.push(`${value.toFixed(4)}: ${what.join("; ")}`);
      }
    }).observe({ type: "layout-shift", buffered: false });
  });
  await text(user, "All three are fine.").waitFor();
  gate.open();
  await text(user, "That is all.").waitFor();
  await user.settled();
  await page.getByRole("button", { name: en.regenerate }).waitFor();
  // Layout shifts are reported after their frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  expect(await page.evaluate(() => (window as unknown as { shifts: string[] }).shifts)).toEqual([]);
});

test.each([
  ["a wide screen", { width: 1280, height: 860 }],
  ["a phone", { width: 390, height: 780 }],
])("end of an answer keeps the position of a reader further up, on %s", async (_, size) => {
  const gate = new Gate();
  const paragraphs = Array.from({ length: 80 }, (_, n) => `Paragraph ${n} of a long answer.`);
  const rules: Rule[] = [{ does: [{ say: paragraphs.join("\n\n") }, gate.move, { say: "\n\nThe end." }] }];
  const user = await fixture.user(size, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("A long one, please");
  // The screen reader gets the same text.
  const paragraph = (words: string) => page.locator(".part[data-kind=text] p").filter({ hasText: words });
  await paragraph("Paragraph 79 of").waitFor();
  const read = paragraph("Paragraph 40 of");
  const top = async (): Promise<number | undefined> => (await read.boundingBox())?.y;
  await read.hover();
  let before = await top();
  await page.mouse.wheel(0, -60);
  await expect.poll(top).not.toBe(before);
  const rests = async (): Promise<boolean> => {
    const last = before;
    before = await top();
    return before === last;
  };
  await expect.poll(rests).toBe(true);
  gate.open();
  await paragraph("The end.").waitFor();
  await user.settled();
  await page.getByRole("button", { name: en.regenerate }).waitFor({ state: "attached" });
  // Content below an ended answer appears in the frames after it.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  expect(await top()).toBe(before);
});

test("wheel scrolls the thread from around it, and scrollable elements scroll themselves", async () => {
  const paragraphs = Array.from({ length: 80 }, (_, n) => `Paragraph ${n} of a long answer.`);
  const rules: Rule[] = [{ does: [{ say: paragraphs.join("\n\n") }] }];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("A long one, please");
  await user.settled();
  const [read, field] = [page.locator(".part[data-kind=text] p").last(), page.locator("textarea").first()];
  const top = async (): Promise<number> => (await read.boundingBox())?.y ?? Number.NaN;
  const turn = async (by: number): Promise<number> => {
    const before = await top();
    await page.mouse.wheel(0, by);
    const moved = async (): Promise<number> => Math.round((await top()) - before);
    await expect.poll(moved).not.toBe(0);
    return moved();
  };
  await field.hover();
  expect(await turn(-240), "over the field").toBe(240);
  await page.getByRole("button", { name: en.toEnd }).hover();
  expect(await turn(-120), "over the button").toBe(120);
  expect(await turn(60), "and back").toBe(-60);

  await field.fill("A line.\n".repeat(40));
  await field.hover();
  const before = await top();
  await page.mouse.wheel(0, -60);
  await expect.poll(() => field.evaluate((e) => e.scrollTop + e.clientHeight < e.scrollHeight)).toBe(true);
  expect(await top(), "a long draft is read by itself").toBe(before);
});

test("broken-off reply continues with one click", async () => {
  const rules: Rule[] = [
    { times: 1, does: [{ say: "The first half," }, "cut"] },
    { when: { contains: en.continuePrompt }, does: [{ say: "and the second." }] },
  ];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Tell me");
  const fault = page.getByRole("alert");
  await fault.getByText("What was written so far is kept.").waitFor();
  expect(await fault.getByText("upstream_lost").isVisible(), "that is for whoever asks").toBe(false);
  await fault.getByText(en.details).click();
  await fault.getByText("upstream_lost").waitFor();
  await user.picture("torn");
  expect(await user.violations()).toEqual([]);
  await fault.getByRole("button", { name: en.continue }).click();
  await text(user, "and the second.").waitFor();
});

test("pause requested by the model is counted down", async () => {
  const rules: Rule[] = [
    { times: 1, does: { http: { status: 429, headers: { "retry-after": "8" } } } },
    { does: [{ say: "Here I am." }] },
  ];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Hello");
  const status = page.locator("[data-status=retrying]");
  await status.getByText(/continues in \d+ s/).waitFor();
  const left = async () => Number(/in (\d+) s/.exec(await status.innerText())?.[1]);
  await expect.poll(left).toBeLessThan(await left());
  await user.picture("rate-limited");
  await text(user, "Here I am.").waitFor();
});

test("thinking shows one live line, then its duration, with Markdown inside", async () => {
  const gate = new Gate();
  const rules: Rule[] = [
    { does: [{ think: "First I look. **Boldly** I go" }, gate.move, { think: " on." }, { say: "Done." }] },
  ];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Think");
  await page.getByText("Boldly I go", { exact: true }).waitFor();
  await user.picture("thinking");
  gate.open();
  const thought = page.getByRole("button", { name: /^Thought for \d+ s$/ });
  await thought.click();
  await page.locator(".part[data-kind=thinking] strong").getByText("Boldly").waitFor();
  await user.settled();
  await page.reload();
  await page.getByRole("button", { name: /^Thought for \d+ s$/ }).waitFor();
});

test("right-to-left letters keep their order everywhere, and reverse nothing else", async () => {
  const hebrew = "שלום עולם.";
  const rules: Rule[] = [{ does: [{ think: hebrew }, { say: `${hebrew}\n\nEnglish.` }] }];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  const field = page.locator("textarea").first();
  await field.fill(hebrew);
  const direction = (selector: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((element) => getComputedStyle(element).direction);
  await expect.poll(() => direction("textarea")).toBe("rtl");
  await page.keyboard.press("Enter");
  await text(user, "English.").waitFor();
  await user.settled();
  await expect.poll(() => direction(".user-bubble")).toBe("rtl");
  await expect.poll(() => direction("header h1")).toBe("rtl");
  await expect.poll(() => direction(".markdown p")).toBe("rtl");
  await expect.poll(() => direction(".markdown p:last-child")).toBe("ltr");
  await page.getByRole("button", { name: en.edit }).first().click();
  await expect.poll(() => direction("form textarea")).toBe("rtl");
  await user.picture("right-to-left");
});

test("skip link leads keyboard users past the rail", async () => {
  const user = await fixture.user();
  const { page } = user;
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await page.keyboard.press("Tab");
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe(en.skipToContent);
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe("MAIN");
  expect(new URL(page.url()).hash).toBe("");
});

test("figures are shown once per message, with the speed of the model alone", async () => {
  const rules: Rule[] = [
    {
      when: { has_result: false },
      does: [
        { say: "I wait." },
        { call: { name: "demo_calendar", arguments: { title: "Tea", when: "2026-11-23T08:00" } } },
      ],
    },
    {
      does: {
        pace: { tokens_per_second: 40, chunk_chars: 4 },
        moves: [{ say: "one two three four five six seven eight nine ten ".repeat(4) }],
      },
    },
  ];
  const server = await fixture.ownServer(Server.scripted(rules));
  const user = await fixture.user({}, server);
  const { page } = user;
  await user.send("Hello");
  await page
    .getByRole("button", { name: /^Approve/ })
    .first()
    .waitFor();
  // Waiting for the user is not time of the model.
  await page.waitForTimeout(3_000);
  await page
    .getByRole("button", { name: /^Approve/ })
    .first()
    .click();
  await user.settled();
  await page.locator(".turn-figures").getByText("tok/s").waitFor();
  const tokensPerSecond = (await page.locator(".turn-figures").innerText()).match(/(\d+) tok\/s/)?.[1];
  expect(
    await page
      .locator("header")
      .getByText(/tok\/s|First token/)
      .count(),
  ).toBe(0);
  const client = await server.client();
  const { items } = await client.call("GET /v1/history/turns");
  const { turn_id = "", output_tokens } = items[0] ?? {};
  const { wall_ms } = await client.call("GET /v1/turns/{turn_id}/waterfall", { path: { turn_id } });
  const atWork = Number(output_tokens) / Number(tokensPerSecond);
  expect(atWork, "the person's time is not the model's").toBeLessThan(wall_ms / 1_000 - 2);
});
