// Courses of a turn on the page: each suggestion, all approvals at once, a stop in each phase, two tabs.

import type { Page, Response } from "playwright-core";
import { describe, expect, test } from "vitest";
import { en as firstEn, zh as firstZh } from "../../app/src/chat/first/words.ts";
import { en } from "../../app/src/i18n/en.ts";
import { zh } from "../../app/src/i18n/zh.ts";
import type { Visitor } from "../browser.ts";
import { Gate } from "../gate.ts";
import { House } from "../house.ts";
import { type Rule, Server } from "../server.ts";

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

const demo = House.of(() => Server.start());

const text = ({ page }: Visitor, words: string | RegExp) =>
  page.locator(".part[data-kind=text]").filter({ hasText: words });

/** Otherwise a call of the avatar would be offered to an earlier page. */
async function avatarIsThere(page: Page, come: () => Promise<unknown>): Promise<void> {
  const isOffer = (response: Response) => response.url().includes("/v1/clients/");
  const [offered] = await Promise.all([page.waitForResponse(isOffer), come()]);
  expect(offered.status()).toBe(200);
}

describe.each([
  ["en-GB", en, firstEn],
  ["zh-CN", zh, firstZh],
] as const)("what the demo model offers is answered without a key, %s", (locale, words, first) => {
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
    const somebody = await demo.visitor({ locale });
    const { page } = somebody;
    if (/wink|眨眼/i.test(prompt)) await avatarIsThere(page, () => page.reload());
    if (typed.some(([other]) => other === prompt)) await somebody.say(prompt);
    else await page.getByRole("button", { name: prompt }).click();
    const approve = page.getByRole("button", { name: new RegExp(`^${words.approve}`) });
    if (prompt === first.suggestions.calendar.prompt) await approve.first().click();
    await text(somebody, /\S/).first().waitFor();
    await somebody.settled();
    const folded = page.locator(".calls[aria-expanded=false]");
    const shown = async (): Promise<string[]> => {
      if ((await folded.count()) > 0) await folded.click();
      return await somebody.cards();
    };
    await expect.poll(shown).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
    await expect.poll(() => page.getByRole("article", { name: words.assistantMessage }).count()).toBe(1);
    expect(await page.getByRole("alert").count(), "no error").toBe(0);
    if (prompt === first.suggestions.riddle.prompt) {
      await page.getByRole("button", { name: /^(Thought|思考[了过])/ }).click();
    }
  });
});

test("a page that is left takes its avatar along: nobody waits for a gesture of one that is gone", async () => {
  const server = await demo.own(Server.start());
  const somebody = await demo.stranger();
  const key = await server.key();
  await avatarIsThere(somebody.page, () => somebody.page.goto(`${server.url}/#token=${key}`));
  await somebody.page.goto(`${server.url}/docs`);
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

test("on a phone the first screen begins at its beginning, and an answer is followed", async () => {
  const somebody = await demo.visitor({ width: 360, height: 640 });
  const { page } = somebody;
  const heading = page.getByRole("heading", { name: en.firstTitle });
  await page.locator(".first-examples button").first().waitFor();
  await expect.poll(async () => (await heading.boundingBox())?.y).toBeGreaterThan(50);
  await somebody.say(firstEn.suggestions.yourself.prompt);
  await text(somebody, /\S/).first().waitFor();
  await somebody.settled();
  const end = page.getByRole("button", { name: en.regenerate });
  await expect.poll(async () => (await end.boundingBox())?.y).toBeLessThan(640);
});

test("several calls ask, all are listed, and one answer approves them", async () => {
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
  const somebody = await demo.visitor({}, await demo.own(Server.scripted(rules)));
  const { page } = somebody;
  await somebody.say("Two meals");
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
  await text(somebody, "Both are in.").waitFor();
  await somebody.settled();
  await page.getByRole("button", { name: /2 tool calls finished/ }).click();
  await expect.poll(() => somebody.cards()).toEqual(["demo.calendar success", "demo.calendar success"]);
  await expect.poll(() => page.title()).not.toContain("(");
});

/** A phase of a turn: the model's behavior, a sign of the phase on the page, and the result of a stop. */
interface Phase {
  name: string;
  rules: Rule[];
  reached(somebody: Visitor): Promise<void>;
  /** Remaining cards. */
  cards: RegExp[];
  /** Text that stays. */
  stays?: string;
}

const status = async ({ page }: Visitor, kind: string): Promise<void> =>
  await page.locator(`[data-status=${kind}]`).first().waitFor();

const PHASES: Phase[] = [
  {
    name: "before the first token",
    rules: [{ does: { first_byte_ms: FOR_EVER_MS, moves: [{ say: "Late." }] } }],
    reached: (somebody) => status(somebody, "waiting_for_model"),
    cards: [],
  },
  {
    name: "in the text",
    rules: [{ does: [{ say: "So far, so good." }, { pause: FOR_EVER_MS }, { say: "Late." }] }],
    reached: (somebody) => text(somebody, "so good").waitFor(),
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
    reached: (somebody) => status(somebody, "preparing"),
    cards: [/demo\.weather (not_started|cancelled)/],
    stays: "So far, so good.",
  },
  {
    name: "in a running tool",
    rules: [{ does: [{ say: "So far, so good." }, call("slow_work", {})] }],
    reached: (somebody) => status(somebody, "running"),
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
    reached: (somebody) => status(somebody, "awaiting_approval"),
    cards: [/demo\.calendar (not_started|cancelled)/],
    stays: "So far, so good.",
  },
  {
    name: "between two steps",
    rules: [
      { when: { has_result: false }, does: [{ say: "So far, so good." }, call("time_now", {})] },
      { does: { first_byte_ms: FOR_EVER_MS, moves: [{ say: "Late." }] } },
    ],
    reached: async (somebody) => {
      await status(somebody, "success");
      await status(somebody, "waiting_for_model");
    },
    cards: [/time\.now success/],
    stays: "So far, so good.",
  },
];

describe.each(["native", "text"] as const)("stopped, %s", (mode) => {
  test.each(PHASES.map((phase) => [phase.name, phase] as const))("%s", async (_, phase) => {
    const rules: Rule[] = [
      { when: { contains: "afterwards" }, does: [{ say: "All is well again." }] },
      ...phase.rules,
    ];
    const somebody = await demo.visitor({}, await demo.own(Server.scripted(rules, TOOLS)));
    const { page } = somebody;
    await somebody.chooseMode(mode);
    await somebody.say("Begin");
    await phase.reached(somebody);
    const began = Date.now();
    await page.keyboard.press("Escape");
    await somebody.settled();
    expect(Date.now() - began, "nobody waits for what was stopped").toBeLessThan(FOR_EVER_MS / 10);
    await expect
      .poll(() => somebody.cards())
      .toEqual(phase.cards.map((pattern) => expect.stringMatching(pattern)));
    if (phase.stays !== undefined) await text(somebody, phase.stays).waitFor();
    expect(await text(somebody, "Late.").count()).toBe(0);
    // The conversation continues, and the model gets the outcomes of the calls.
    await somebody.say("And afterwards?");
    await text(somebody, "All is well again.").waitFor();
    await somebody.settled();
    await expect
      .poll(() => page.getByRole("article", { name: "Assistant message" }).count())
      .toBeGreaterThanOrEqual(1);
  });
});

test("two tabs show the same message while it is written, and each may stop it", async () => {
  const gate = new Gate();
  const count = { does: [{ say: "1 2 " }, gate.move, { say: "3 4 " }, { pause: FOR_EVER_MS }] };
  const rules: Rule[] = [
    { when: { contains: "Count" }, ...count },
    { when: { has_result: false }, does: [call("time_now", {})] },
    { does: [{ say: "That late." }] },
  ];
  const somebody = await demo.visitor({}, await demo.own(Server.scripted(rules)));
  const { page } = somebody;
  await somebody.say("Count");
  await text(somebody, "1 2").waitFor();
  await expect.poll(() => page.url()).toContain("/c/");
  const other = await somebody.tab();
  await other.goto(page.url());
  const counted = other.locator(".part[data-kind=text]");
  await counted.filter({ hasText: "1 2" }).waitFor();
  gate.open();
  await counted.filter({ hasText: "3 4" }).waitFor();
  expect(await page.locator("article[aria-busy=true]").count()).toBe(1);
  await other.getByRole("button", { name: "Stop", exact: true }).click();
  await somebody.settled();
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

test("in text mode a call is a card and its markup is never shown", async () => {
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
  const somebody = await demo.visitor({}, await demo.own(Server.scripted(rules)));
  const { page } = somebody;
  await somebody.chooseMode("text");
  await page.evaluate(() => {
    const state = window as unknown as { markup: boolean };
    state.markup = false;
    new MutationObserver(() => {
      if (/<<<|TOOL_REQUEST|「/.test(document.querySelector("main")?.textContent ?? "")) state.markup = true;
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await somebody.say("Weather?");
  await status(somebody, "preparing");
  await expect.poll(() => somebody.cards()).toEqual(["demo.weather preparing"]);
  gate.open();
  await text(somebody, "Seen.").waitFor();
  await somebody.settled();
  await expect.poll(() => somebody.cards()).toEqual(["demo.weather success"]);
  expect(await page.evaluate(() => (window as unknown as { markup: boolean }).markup)).toBe(false);
});

test("an error in mid-reply keeps what was there, says what helps, and the answer is asked for again", async () => {
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
  const somebody = await demo.visitor({}, await demo.own(Server.scripted(rules)));
  const { page } = somebody;
  await somebody.say("Hello");
  await page.getByRole("alert").filter({ hasText: "the model is on fire" }).waitFor();
  await text(somebody, "This much was said.").waitFor();
  expect(await page.getByRole("button", { name: "Switch to text mode" }).count()).toBe(0);
  await page.getByRole("button", { name: "Try again" }).click();
  await text(somebody, "This time it works.").waitFor();
  await page.getByText("2 of 2").waitFor();
});

test("what failed and what helps is said in the language of the page, the upstream's words as they came", async () => {
  const rules: Rule[] = [
    {
      does: [{ say: "说到这里。" }, { error: { message: "the model is on fire", type: "server_error" } }],
    },
  ];
  const somebody = await demo.visitor({ locale: "zh-CN" }, await demo.own(Server.scripted(rules)));
  const { page } = somebody;
  await somebody.say("你好");
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
