// Reference cases of tool calling, for models with and without native tools: the first five, and the case of the empty function name.

import { beforeEach, describe, expect, test } from "vitest";
import type { BrowserUser } from "../browser.ts";
import { Gate } from "../gate.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const MODES = ["native", "text"] as const;
/** Speed of the mock model. */
const SPEED = { tokens_per_second: 60 };

/** Opened by the test when it has seen the first half of a sentence; the second one is further on. */
const gate = new Gate();
const further = new Gate();
beforeEach(() => {
  for (const one of [gate, further]) one.close();
});

/** States of a call in order. */
const STEPS = ["preparing", "queued", "running", "success"];

const slow = (moves: unknown[]) => ({ pace: SPEED, moves });
const call = (name: string, args: object) => ({ call: { name, arguments: args } });
/** A chunk as the server of the reported case sent it, byte for byte. */
const chunk = (delta: object) => ({
  raw: `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 0, model: "mock", choices: [{ index: 0, delta }] })}\n\n`,
});

const RULES: Rule[] = [
  {
    when: { contains: "随便聊聊" },
    does: slow([
      { say: "好的，我们随便聊聊。" },
      gate.move,
      { say: "今天没有工具，只有文字：" },
      further.move,
      { say: "一个字一个字地来，一句接着一句，中间不会断。" },
    ]),
  },
  {
    when: { contains: "北京的天气", has_result: false },
    does: slow([{ say: "我先看一下天气。\n\n" }, call("slow_weather", { city: "北京" })]),
  },
  { when: { contains: "北京的天气" }, does: slow([{ say: "天气看完了，还是这条消息，我接着往下说。" }]) },
  {
    when: { contains: "三个工具", has_result: false },
    does: slow([
      { say: "一共查三样。\n\n" },
      call("demo_weather", { city: "北京" }),
      call("slow_weather", { city: "上海" }),
      call("time_now", { timezone: "Asia/Shanghai" }),
    ]),
  },
  { when: { contains: "三个工具" }, does: slow([{ say: "三样都查完了。" }]) },
  {
    when: { contains: "眨眼", has_result: false },
    does: slow([
      { say: "看着我。\n\n" },
      call("live2d_expression", { name: "wink" }),
      {
        say: "\n\n眨眼的时候，这句话还没有说完：它要说很久很久，久到表情早就换好了，",
      },
      gate.move,
      { say: "才轮到最后一个字。" },
      call("live2d_motion", { group: "Wave" }),
    ]),
  },
  { when: { contains: "眨眼" }, does: slow([{ say: "\n\n做完了。" }]) },
  {
    when: { contains: "play_animation(jump)", has_result: false },
    does: [call("play_animation", { animation_name: "jump" })],
  },
  { when: { contains: "play_animation", has_result: true }, does: [{ say: "动画播完了。" }] },
  { when: { contains: "支持哪些函数" }, does: [{ say: "我会 play_animation：jump 和 wave。" }] },
];

/** The stream of the reported case: `name` is `""` in every delta but the first. */
const EMPTY_NAMES: Record<string, unknown[]> = {
  tool_calls: [
    chunk({
      role: "assistant",
      tool_calls: [
        { index: 0, id: "call_1", type: "function", function: { name: "play_animation", arguments: "" } },
      ],
    }),
    chunk({ tool_calls: [{ index: 0, function: { name: "", arguments: '{"animation_name":' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { name: "", arguments: ' "jump"}' } }] }),
    { finish: "tool_calls" },
  ],
  function_call: [
    chunk({ role: "assistant", function_call: { name: "play_animation", arguments: "" } }),
    chunk({ function_call: { name: "", arguments: '{"animation_name":' } }),
    chunk({ function_call: { name: "", arguments: ' "jump"}' } }),
    { finish: "function_call" },
  ],
};

const TOOLS = `
[commands."play.animation"]
description = "Plays an animation: jump, wave"
argv = ["echo", "applied: {animation_name}"]
effect = "cosmetic"

[commands."slow.weather"]
description = "The weather of a city, when the test says so"
argv = ${JSON.stringify(gate.command("阴"))}
effect = "read"
parameters = '{"type": "object", "properties": {"city": {"type": "string"}}}'
`;

const fixture = ServerFixture.of(() => Server.scripted(RULES, TOOLS));

/** A user who has sent a message and records the thread from before the first token. */
async function askRecorded(
  mode: "auto" | "native" | "text",
  question: string,
  server = fixture.server,
): Promise<BrowserUser> {
  const user = await fixture.user({ locale: "zh-CN" }, server);
  await user.chooseMode(mode);
  await user.record();
  await user.send(question);
  return user;
}

const answers = ({ page }: BrowserUser) => page.getByRole("article", { name: "助手的消息" });
const text = ({ page }: BrowserUser, words: string | RegExp) =>
  page.locator(".part[data-kind=text]").filter({ hasText: words });
/** Whether the message is still streaming. */
const isRunning = async ({ page }: BrowserUser): Promise<boolean> =>
  (await page.locator("article[aria-busy=true]").count()) > 0;

describe.each(MODES)("reference cases, %s", (mode) => {
  test("chat without tools streams at once into one message", async () => {
    const user = await askRecorded(mode, "随便聊聊");
    await text(user, "好的").waitFor();
    expect(await isRunning(user), "the first words are there before the last").toBe(true);
    gate.open();
    await text(user, "只有文字").waitFor();
    expect(await isRunning(user)).toBe(true);
    further.open();
    await text(user, "不会断。").waitFor();
    await user.settled();
    const { lengths, cards } = await user.recording();
    expect(lengths, "nothing is taken back").toEqual([...lengths].sort((a, b) => a - b));
    expect(cards).toEqual([""]);
    await expect.poll(() => answers(user).count()).toBe(1);
  });

  test("one tool shows a running card within the text, succeeds, and the same message continues", async () => {
    const user = await askRecorded(mode, "北京的天气怎么样");
    await text(user, "我先看一下天气").waitFor();
    await user.page.locator(".card[data-status=running]").waitFor();
    expect(await isRunning(user)).toBe(true);
    gate.open();
    await text(user, "我接着往下说").waitFor();
    await user.settled();
    const { cards, lengths } = await user.recording();
    expect(cards.filter((card) => !isShort(card))).toEqual([
      "",
      "slow.weather running",
      "slow.weather success",
    ]);
    expect(lengths).toEqual([...lengths].sort((a, b) => a - b));
    await expect.poll(() => kinds(user)).toEqual(["text", "tool_call", "text"]);
    await expect.poll(() => answers(user).count()).toBe(1);
  });

  test("several tools show folded cards in order in one message", async () => {
    const user = await askRecorded(mode, "三个工具");
    const { page } = user;
    await expect
      .poll(() => user.cards())
      .toEqual(["demo.weather success", "slow.weather running", "time.now queued"]);
    gate.open();
    await text(user, "三样都查完了").waitFor();
    await user.settled();
    const { cards } = await user.recording();
    expect(
      cards.filter((states) => !isInTurn(states)),
      "one after the other, in their order",
    ).toEqual([]);
    const group = page.getByRole("button", { name: /3 个工具/ });
    await expect.poll(() => group.getAttribute("aria-expanded")).toBe("false");
    await group.click();
    await expect
      .poll(() => user.cards())
      .toEqual(["demo.weather success", "slow.weather success", "time.now success"]);
    const heads = page.locator(".card-head");
    await expect
      .poll(() => heads.evaluateAll((all) => all.map((head) => head.getAttribute("aria-expanded"))))
      .toEqual(Array(3).fill("false"));
    for (const at of [0, 1, 2]) await heads.nth(at).click();
    for (const [at, words] of ["北京", "上海", "Asia/Shanghai"].entries())
      await page.locator(".card-body").nth(at).getByText(words).first().waitFor();
    await expect.poll(() => answers(user).count()).toBe(1);
  });

  test("Live2D call in mid-reply shows a card and moves the model at once", async () => {
    const user = await askRecorded(mode, "眨眼并挥手");
    const { page } = user;
    await page.getByRole("img", { name: "Twine: 眨眼", exact: true }).waitFor();
    expect(await text(user, "最后一个字").count(), "the face is there in mid-sentence").toBe(0);
    expect(await isRunning(user)).toBe(true);
    await expect.poll(() => page.locator(".card").filter({ hasText: "live2d.expression" }).count()).toBe(1);
    gate.open();
    await text(user, /^做完了/).waitFor();
    await user.settled();
    await expect.poll(() => user.cards()).toEqual(["live2d.expression success", "live2d.motion success"]);
    for (const at of [0, 1]) {
      await page.locator(".card-head").nth(at).click();
      await page
        .locator(".card-body")
        .nth(at)
        .getByText(/已生效/)
        .waitFor();
    }
  });
});

test.each(["native", "auto"] as const)(
  "reference case, %s: native tool error is shown with a hint to text mode, without a silent fallback",
  async (mode) => {
    const rules: Rule[] = [
      { times: 1, does: { refuse_tools: "vllm" } },
      { does: [{ say: "没有工具，我也能说。" }] },
    ];
    const user = await askRecorded(mode, "你好", await fixture.ownServer(Server.scripted(rules)));
    const error = answers(user).getByRole("alert");
    await error.getByText("这个上游或模型不支持原生工具调用。").waitFor();
    await error.getByText("请改用文本模式").waitFor();
    await user.settled();
    expect(await text(user, "没有工具").count(), "no second request").toBe(0);
    await expect.poll(() => user.isMode(mode)).toBe(true);
    await error.getByRole("button", { name: "改用文本模式" }).click();
    await text(user, "没有工具，我也能说").waitFor();
    await expect.poll(() => user.isMode("text")).toBe(true);
  },
);

describe("empty function names", () => {
  test.each(Object.keys(EMPTY_NAMES))(
    "empty string does not overwrite the function name (%s)",
    async (shape) => {
      const rules: Rule[] = [
        { when: { has_result: false }, does: EMPTY_NAMES[shape] },
        { does: [{ say: "动画播完了。" }] },
      ];
      const server = await fixture.ownServer(Server.scripted(rules, TOOLS));
      const user = await askRecorded("native", "play_animation(jump)", server);
      await bubble(user, server, "jump");
    },
  );

  for (const mode of MODES) {
    test(`play_animation(jump) is emitted once, with one card, its name and arguments (${mode})`, async () => {
      const user = await askRecorded(mode, "play_animation(jump)");
      await bubble(user, fixture.server, "jump");
    });

    test(`question about functions shows no card without a call (${mode})`, async () => {
      const user = await askRecorded(mode, "你支持哪些函数调用");
      await text(user, "jump 和 wave").waitFor();
      await user.settled();
      expect(await user.cards()).toEqual([]);
    });
  }
});

/** Checks the card of the call: one card, the right name and arguments, one call. */
async function bubble(user: BrowserUser, server: Server, animation: string): Promise<void> {
  const { page } = user;
  await text(user, "动画播完了").waitFor();
  await user.settled();
  // One card per call, which is distinct from text.
  await expect.poll(() => user.cards()).toEqual(["play.animation success"]);
  await expect.poll(() => kinds(user)).toEqual(["tool_call", "text"]);
  // The card shows the right name and arguments, and the result.
  await page.locator(".card-head").click();
  const body = page.locator(".card-body");
  await body.getByText(`"animation_name": "${animation}"`).waitFor();
  await body.getByText(`applied: ${animation}`).waitFor();
  // The server emits the call once.
  const { items }: { items: { tool_name: string; turn_id: string }[] } = await got(
    server,
    "/v1/history/calls",
  );
  const calls = items.filter(({ tool_name }) => tool_name === "play.animation");
  const [first] = calls;
  const events = await (await fetched(server, `/v1/turns/${first?.turn_id}/events`)).text();
  for (const type of ["tool_use", "tool_input", "tool_start", "tool_result"]) {
    expect(events.match(new RegExp(`"type":"${type}"`, "g")), type).toHaveLength(1);
  }
}

async function fetched(server: Server, path: string): Promise<Response> {
  return await fetch(server.url + path, { headers: { authorization: `Bearer ${await server.key()}` } });
}

async function got<T>(server: Server, path: string): Promise<T> {
  const answer: T = await (await fetched(server, path)).json();
  return answer;
}

async function kinds({ page }: BrowserUser): Promise<(string | null)[]> {
  const parts = page.locator("article .part");
  return await parts.evaluateAll((all) => all.map((part) => part.getAttribute("data-kind")));
}

/** A state that may end before it is drawn. */
const isShort = (card: string): boolean => /(preparing|queued)$/.test(card);

/** Checks that no call is further than the one before it, and at most one runs. */
function isInTurn(cards: string): boolean {
  const steps = cards.split(", ").map((card) => STEPS.indexOf(card.split(" ").at(-1) ?? ""));
  const isFurther = steps.some((step, at) => step > (steps[at - 1] ?? step));
  return !isFurther && steps.filter((step) => step === STEPS.indexOf("running")).length <= 1;
}
