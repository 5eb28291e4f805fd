// Courses of a turn on the page: each suggestion, all approvals at once, a stop in each phase, two tabs.

import type { Page, Response } from "playwright-core";
import { describe, expect, test } from "vitest";
import { en as firstEn, zh as firstZh } from "../../app/src/chat/first/words.ts";
import { en } from "../../app/src/i18n/en.ts";
import { zh } from "../../app/src/i18n/zh.ts";
import type { BrowserUser } from "../browser.ts";
import { Gate } from "../gate.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const call = (name: string, args: object) => ({ call: { name, arguments: args } });
/** Longer than any test waits. */
const FOR_EVER_MS = 600_000;

const TOOLS = `
[commands."slow.work"]
description = "Works for a long time"
argv = ["sleep", "600"]
input = "none"
effect = "read"
timeout_ms = 600_000
`;

const demo = ServerFixture.of(() => Server.start());

const text = ({ page }: BrowserUser, words: string | RegExp) =>
  page.locator(".part[data-kind=text]").filter({ hasText: words });

/** Otherwise a call of the avatar would be offered to an earlier page. */
async function avatarIsThere(page: Page, navigate: () => Promise<unknown>): Promise<void> {
  const isOffer = (response: Response) => response.url().includes("/v1/clients/");
  const [offered] = await Promise.all([page.waitForResponse(isOffer), navigate()]);
  expect(offered.status()).toBe(200);
}

describe.each([
  ["en-GB", en, firstEn],
  ["zh-CN", zh, firstZh],
] as const)("suggestions of the demo model are answered without a key, %s", (locale, words, first) => {
  const isEnglish = locale === "en-GB";
  /** A suggestion, and the outcomes of its calls. */
  const offers: [string, RegExp[]][] = [
    [
      first.suggestions.weather.prompt,
      [/demo\.weather success/, /demo\.weather success/, /demo\.weather success/],
    ],
    [first.suggestions.calendar.prompt, [/time\.now success/, /demo\.calendar success/]],
    [first.suggestions.riddle.prompt, []],
    [first.suggestions.yourself.prompt, []],
  ];
  /** Questions without a suggestion that the demo model answers. */
  const typed: [string, RegExp[]][] = [
    [isEnglish ? "Wink at me while you talk" : "一边说话，一边对我眨眼", [/live2d\.\w+ success/]],
    [isEnglish ? "Call a tool that fails" : "调用一个会失败的工具", [/demo\.fail error/]],
  ];
  test.each([...offers, ...typed])("%s", async (prompt, expected) => {
    const user = await demo.user({ locale });
    const { page } = user;
    if (/wink|眨眼/i.test(prompt)) await avatarIsThere(page, () => page.reload());
    if (typed.some(([other]) => other === prompt)) await user.send(prompt);
    else await page.getByRole("button", { name: prompt }).click();
    const approve = page.getByRole("button", { name: new RegExp(`^${words.approve}`) });
    if (prompt === first.suggestions.calendar.prompt) await approve.first().click();
    await text(user, /\S/).first().waitFor();
    await user.settled();
    const folded = page.locator(".calls[aria-expanded=false]");
    const shown = async (): Promise<string[]> => {
      if ((await folded.count()) > 0) await folded.click();
      return await user.cards();
    };
    await expect.poll(shown).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
    await expect.poll(() => page.getByRole("article", { name: words.assistantMessage }).count()).toBe(1);
    expect(await page.getByRole("alert").count(), "no error").toBe(0);
    if (prompt === first.suggestions.riddle.prompt) {
      await page.getByRole("button", { name: /^(Thought|思考[了过])/ }).click();
    }
  });
});

test("closed page withdraws its avatar, so that no call waits for a gesture", async () => {
  const server = await demo.ownServer(Server.start());
  const user = await demo.anonymous();
  const key = await server.key();
  await avatarIsThere(user.page, () => user.page.goto(`${server.url}/#token=${key}`));
  await user.page.goto(`${server.url}/docs`);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ input: [{ type: "text", text: "Wink at me while you talk" }] });
  const wink = async () => {
    const started = await fetch(`${server.url}/v1/turns`, { method: "POST", headers, body });
    const { turn_id } = (await started.json()) as { turn_id: string };
    return (await fetch(`${server.url}/v1/turns/${turn_id}/events`, { headers })).text();
  };
  // Long before the offer of a silent page would expire.
  await expect.poll(wink, { timeout: 30_000 }).toMatch(/"tool_result".*no_viewer/);
});

test("first screen on a phone starts at its top, and an answer is followed", async () => {
  const user = await demo.user({ width: 360, height: 640 });
  const { page } = user;
  const heading = page.getByRole("heading", { name: en.firstTitle });
  await page.locator(".first-examples button").first().waitFor();
  await expect.poll(async () => (await heading.boundingBox())?.y).toBeGreaterThan(50);
  await user.send(firstEn.suggestions.yourself.prompt);
  await text(user, /\S/).first().waitFor();
  await user.settled();
  const end = page.getByRole("button", { name: en.regenerate });
  await expect.poll(async () => (await end.boundingBox())?.y).toBeLessThan(640);
});

test("several approvals are listed, and one answer approves them", async () => {
  const rules: Rule[] = [
    {
      when: { has_result: false },
      does: [
        { say: "Two entries." },
        call("demo_calendar", { title: "Breakfast", when: "2026-11-23T08:00" }),
        call("demo_calendar", { title: "Lunch", when: "2026-11-23T12:00" }),
      ],
    },
    { does: [{ say: "Both are in." }] },
  ];
  const user = await demo.user({}, await demo.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Two meals");
  const bar = page.getByText("2 calls are waiting for you");
  await bar.waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  await expect
    .poll(async () => (await bar.boundingBox())?.height, { message: "on a phone it is one line" })
    .toBeLessThan(30);
  await page.setViewportSize({ width: 1280, height: 860 });
  await expect.poll(() => page.title()).toContain("(2)");
  await expect.poll(() => page.getByRole("group", { name: /wants to run/ }).count()).toBe(2);
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Approve all 2" }).first().click();
  await text(user, "Both are in.").waitFor();
  await user.settled();
  await page.getByRole("button", { name: /2 tool calls finished/ }).click();
  await expect.poll(() => user.cards()).toEqual(["demo.calendar success", "demo.calendar success"]);
  await expect.poll(() => page.title()).not.toContain("(");
});

/** A phase of a turn: the model's behavior, a sign of the phase on the page, and the result of a stop. */
interface Phase {
  name: string;
  rules: Rule[];
  reached(user: BrowserUser): Promise<void>;
  /** Remaining cards. */
  cards: RegExp[];
  /** Text that stays. */
  stays?: string;
}

const status = async ({ page }: BrowserUser, kind: string): Promise<void> =>
  await page.locator(`[data-status=${kind}]`).first().waitFor();

const PHASES: Phase[] = [
  {
    name: "before the first token",
    rules: [{ does: { first_byte_ms: FOR_EVER_MS, moves: [{ say: "Late." }] } }],
    reached: (user) => status(user, "waiting_for_model"),
    cards: [],
  },
  {
    name: "in the text",
    rules: [{ does: [{ say: "So far, so good." }, { pause: FOR_EVER_MS }, { say: "Late." }] }],
    reached: (user) => text(user, "so good").waitFor(),
    cards: [],
    stays: "So far, so good.",
  },
  {
    name: "in the arguments",
    rules: [
      {
        does: [
          { say: "So far, so good." },
          { half_call: { name: "demo_weather", arguments: '{"city": "Par' } },
          { pause: FOR_EVER_MS },
        ],
      },
    ],
    reached: (user) => status(user, "preparing"),
    cards: [/demo\.weather (not_started|cancelled)/],
    stays: "So far, so good.",
  },
  {
    name: "in a running tool",
    rules: [{ does: [{ say: "So far, so good." }, call("slow_work", {})] }],
    reached: (user) => status(user, "running"),
    cards: [/slow\.work cancelled/],
    stays: "So far, so good.",
  },
  {
    name: "at a question",
    rules: [
      {
        does: [
          { say: "So far, so good." },
          call("demo_calendar", { title: "Tea", when: "2026-11-23T15:00" }),
        ],
      },
    ],
    reached: (user) => status(user, "awaiting_approval"),
    cards: [/demo\.calendar (not_started|cancelled)/],
    stays: "So far, so good.",
  },
  {
    name: "between two steps",
    rules: [
      { when: { has_result: false }, does: [{ say: "So far, so good." }, call("time_now", {})] },
      { does: { first_byte_ms: FOR_EVER_MS, moves: [{ say: "Late." }] } },
    ],
    reached: async (user) => {
      await status(user, "success");
      await status(user, "waiting_for_model");
    },
    cards: [/time\.now success/],
    stays: "So far, so good.",
  },
];

describe.each(["native", "text"] as const)("stopped turn, %s", (mode) => {
  test.each(PHASES.map((phase) => [phase.name, phase] as const))("%s", async (_, phase) => {
    const rules: Rule[] = [
      { when: { contains: "afterwards" }, does: [{ say: "All is well again." }] },
      ...phase.rules,
    ];
    const user = await demo.user({}, await demo.ownServer(Server.scripted(rules, TOOLS)));
    const { page } = user;
    await user.chooseMode(mode);
    await user.send("Begin");
    await phase.reached(user);
    const began = Date.now();
    await page.keyboard.press("Escape");
    await user.settled();
    expect(Date.now() - began, "nobody waits for what was stopped").toBeLessThan(FOR_EVER_MS / 10);
    await expect
      .poll(() => user.cards())
      .toEqual(phase.cards.map((pattern) => expect.stringMatching(pattern)));
    if (phase.stays !== undefined) await text(user, phase.stays).waitFor();
    expect(await text(user, "Late.").count()).toBe(0);
    // The conversation continues, and the model gets the outcomes of the calls.
    await user.send("And afterwards?");
    await text(user, "All is well again.").waitFor();
    await user.settled();
    await expect
      .poll(() => page.getByRole("article", { name: "Assistant message" }).count())
      .toBeGreaterThanOrEqual(1);
  });
});

test("two tabs show the same streaming message, and each can stop it", async () => {
  const gate = new Gate();
  const count = { does: [{ say: "1 2 " }, gate.move, { say: "3 4 " }, { pause: FOR_EVER_MS }] };
  const rules: Rule[] = [
    { when: { contains: "Count" }, ...count },
    { when: { has_result: false }, does: [call("time_now", {})] },
    { does: [{ say: "That late." }] },
  ];
  const user = await demo.user({}, await demo.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Count");
  await text(user, "1 2").waitFor();
  await expect.poll(() => page.url()).toContain("/c/");
  const other = await user.tab();
  await other.goto(page.url());
  const counted = other.locator(".part[data-kind=text]");
  await counted.filter({ hasText: "1 2" }).waitFor();
  gate.open();
  await counted.filter({ hasText: "3 4" }).waitFor();
  expect(await page.locator("article[aria-busy=true]").count()).toBe(1);
  await other.getByRole("button", { name: "Stop", exact: true }).click();
  await user.settled();
  await other.locator("article[aria-busy=true]").waitFor({ state: "detached" });
  // The hidden page draws nothing, and its clock is slow; its state is the same.
  const shown = await other.locator("article .part").allTextContents();
  await expect.poll(() => page.locator("article .part").allTextContents()).toEqual(shown);
  // A message of one page appears in the other when it becomes visible.
  await other.locator("textarea").first().fill("What time is it?");
  await other.keyboard.press("Enter");
  await other.locator(".card[data-status=success]").waitFor();
  await page.bringToFront();
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.locator(".card[data-status=success]").waitFor();
});

test("call in text mode is a card, and its markup is never shown", async () => {
  const gate = new Gate();
  const rules: Rule[] = [
    {
      when: { has_result: false },
      does: {
        pace: { tokens_per_second: 80, chunk_chars: 3 },
        moves: [
          { say: "I look.\n\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」demo_weather「末」,\ncity:「始」Os" },
          gate.move,
          { say: "lo「末」\n<<<[END_TOOL_REQUEST]>>>\n\nMeanwhile I talk." },
        ],
      },
    },
    { does: [{ say: "Seen." }] },
  ];
  const user = await demo.user({}, await demo.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.chooseMode("text");
  await page.evaluate(() => {
    const state = window as unknown as { markup: boolean };
    state.markup = false;
    new MutationObserver(() => {
      if (/<<<|TOOL_REQUEST|「/.test(document.querySelector("main")?.textContent ?? "")) state.markup = true;
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await user.send("Weather?");
  await status(user, "preparing");
  await expect.poll(() => user.cards()).toEqual(["demo.weather preparing"]);
  gate.open();
  await text(user, "Seen.").waitFor();
  await user.settled();
  await expect.poll(() => user.cards()).toEqual(["demo.weather success"]);
  expect(await page.evaluate(() => (window as unknown as { markup: boolean }).markup)).toBe(false);
});

test("error in mid-reply keeps the content, shows a remedy, and the answer is regenerated", async () => {
  const rules: Rule[] = [
    {
      times: 1,
      does: [
        { say: "This much was said." },
        { error: { message: "the model is on fire", type: "server_error" } },
      ],
    },
    { does: [{ say: "This time it works." }] },
  ];
  const user = await demo.user({}, await demo.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Hello");
  await page.getByRole("alert").filter({ hasText: "the model is on fire" }).waitFor();
  await text(user, "This much was said.").waitFor();
  expect(await page.getByRole("button", { name: "Switch to text mode" }).count()).toBe(0);
  await page.getByRole("button", { name: "Try again" }).click();
  await text(user, "This time it works.").waitFor();
  await page.getByText("2 of 2").waitFor();
});

test("error and remedy are in the language of the page, with the upstream's own text", async () => {
  const rules: Rule[] = [
    {
      does: [{ say: "说到这里。" }, { error: { message: "the model is on fire", type: "server_error" } }],
    },
  ];
  const user = await demo.user({ locale: "zh-CN" }, await demo.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("你好");
  const error = page.getByRole("alert");
  await error.getByText("上游报告了错误。", { exact: true }).waitFor();
  await error.getByText("已生成的内容会保留。", { exact: true }).waitFor();
  await error.getByRole("button", { name: zh.continue }).waitFor();
  // Details are hidden until requested.
  await error.getByText(zh.details, { exact: true }).click();
  await error.getByText("the model is on fire (server_error)", { exact: true }).waitFor();
  // Switching to English translates the error at once.
  await page.getByRole("button", { name: zh.settings }).click();
  await page.getByLabel(zh.language).selectOption("en");
  await error.getByText("The upstream reported an error.", { exact: true }).waitFor();
});
