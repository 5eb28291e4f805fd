import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import type { BrowserOptions, BrowserUser } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

/** A user at the tester. */
async function openTester(options: BrowserOptions = {}): Promise<BrowserUser> {
  const user = await fixture.user(options, fixture.server, "/tester");
  await user.page.locator(".tool-row").first().waitFor();
  return user;
}

/** Starts playback, and stops after the first piece; returns the button for the next one. */
async function played(panel: Locator): Promise<Locator> {
  // In one script: on a busy machine all pieces would arrive before the next action.
  await panel.evaluate(async (panel) => {
    const click = (icon: string) => panel.querySelector(`.lucide-${icon}`)?.closest("button")?.click();
    click("play");
    await new Promise((resolve) => setTimeout(resolve));
    click("step-forward");
  });
  return panel.locator("button:has(.lucide-step-forward)");
}

const RECORDED = `data: {"choices":[{"delta":{"reasoning_content":"Which city?"}}]}

data: {"choices":[{"delta":{"content":"Let me **look**."}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\\"city\\":"}}]}}]}

data: {oops}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"Chengdu\\"}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

`;

test.each<[string, BrowserOptions]>([
  ["light", {}],
  ["phone-zh-dark", { locale: "zh-CN", colorScheme: "dark", width: 360, height: 740 }],
])("recorded stream is decoded and drawn like the chat: %s", async (name, options) => {
  const user = await openTester(options);
  const { page } = user;
  await page.locator('a[href="/tester?recorded"]').click();
  const choose = page.locator("input[type=file]");
  await choose.setInputFiles({ name: "reply.sse", mimeType: "text/plain", buffer: Buffer.from(RECORDED) });
  await page.getByText("openai-chat · ").waitFor();
  await page.getByText("invalid_event").waitFor();
  await page.getByText('{"city":"Chengdu"}').waitFor();
  const card = page.locator(".card");
  await card.waitFor();
  await expect.poll(() => page.locator(".thread strong").textContent()).toBe("look");
  await user.picture(`recorded-${name}`);
  expect(await user.violations()).toEqual([]);
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);

  // Piece by piece: the card appears before its arguments.
  const drawn = page.locator("section", { has: page.locator(".thread") });
  const step = await played(drawn);
  for (const _ of ["thought", "text", "call"]) await step.click();
  await drawn.locator(".card[data-status=preparing]").waitFor();
  await user.picture(`recorded-${name}-playing`);
  while (await step.isEnabled()) await step.click();
  await drawn.locator(".card[data-status=queued]").waitFor();
  expect(await user.violations()).toEqual([]);

  await choose.setInputFiles({ name: "x.gz", mimeType: "", buffer: Buffer.from([0x1f, 0x8b, 8, 0]) });
  await page.getByText("compressed").waitFor();
  await page.getByText("curl --compressed").waitFor();
  await page.locator('a[href="/tester"]').last().click();
  await page.locator(".tool-row").first().waitFor();
});

test("tools are found, called, previewed and parsed from a text", async () => {
  const user = await openTester();
  const { page } = user;
  const panel = (name: RegExp) => page.getByRole("region", { name });
  await page.getByRole("searchbox").fill("weather");
  await expect.poll(() => page.locator(".tool-row").count()).toBe(1);
  await page.getByRole("button", { name: /demo\.weather/ }).click();
  const run = panel(/Run a tool/);
  await run.getByRole("button", { name: /^Run/ }).click();
  await run.getByText("This field is required.").waitFor();
  await run.getByLabel("city").fill("成都");
  await run.getByText("would run").waitFor();
  await page.keyboard.press("Control+Enter");
  await run.getByText(/Done · [\d.]+ m?s/).waitFor();
  await run.getByText("temperature_c").waitFor();
  await page.getByRole("searchbox").fill("");

  const preview = panel(/preview/);
  await preview.getByText(/<<<\[TOOL_REQUEST\]>>>/).waitFor();
  await preview.getByRole("button", { name: "native" }).click();
  await preview.getByText(/"demo_weather"/).waitFor();
  const native = await preview.locator("pre").innerText();
  await preview.getByRole("button", { name: "XML" }).click();
  await expect.poll(() => preview.locator("pre").innerText()).not.toBe(native);
  const prompt = await preview.locator("pre").innerText();
  await preview.getByRole("button", { name: "Copy" }).click();
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe(prompt);

  const parse = panel(/Parse text/);
  const call = `<<<[TOOL_REQUEST]>>>\ntool_name:「始」demo_calendar「末」,\ntitle:「始」早餐「末」,\nwhen:「始」明天「末」\n<<<[END_TOOL_REQUEST]>>>`;
  await parse.getByRole("textbox").fill(`查一下🌦️\n${call}\n稍等`);
  await parse.getByText("1 call found · 0 warnings").waitFor();
  await expect.poll(() => parse.locator("mark").innerText()).toBe(call);
  await parse.getByText("would ask").waitFor();
  await user.picture("tester");
  expect(await user.violations()).toEqual([]);

  const step = await played(parse);
  await parse.getByRole("slider", { name: "Chunk size" }).fill("64");
  await step.click();
  await parse.getByText("Arriving", { exact: true }).waitFor();
  await user.picture("tester-play");
  expect(await user.violations()).toEqual([]);
  while (await step.isEnabled()) await step.click();
  await parse.getByText("would ask").waitFor();
  await parse.getByRole("button", { name: "Back to text" }).click();

  // A call in a text can be run with its arguments; a change needs a confirmation first.
  await parse.getByRole("button", { name: "Try demo.calendar with these arguments" }).click();
  await expect.poll(() => run.getByLabel("title").inputValue()).toBe("早餐");
  await run.getByRole("button", { name: /^Run/ }).click();
  await run.getByRole("group", { name: /needs your approval/ }).waitFor();
  await user.picture("tester-asks");
  expect(await user.violations()).toEqual([]);
  await run.getByRole("button", { name: "Approve and run", exact: true }).click();
  await run.getByText(/^Done/).waitFor();
});

test("text rules of an agent are tried on a text", async () => {
  const client = await fixture.server.client();
  const settings = {
    model: "demo",
    text_rules: [
      { name: "numbers", pattern: "\\d+", replace: "#", in: "shown" },
      { pattern: "secret", hide: true, in: "model", target_roles: ["tool"] },
    ],
  };
  await client.call("POST /v1/agents", { body: { name: "tidy", settings } });
  const user = await openTester();
  const { page } = user;
  const rules = page.getByRole("region", { name: "Text rules", exact: true });
  await rules.getByText("This agent has no text rules.").waitFor();
  await page.locator("main header").getByLabel("Agent").selectOption("tidy");
  const row = (text: string) => rules.getByRole("listitem").filter({ hasText: text });
  await row("numbers").waitFor();
  await rules.getByRole("textbox", { name: "Example text" }).fill("Room 12, secret 7");
  await rules.locator("[data-side=shown]").getByText("Room #, secret #").waitFor();
  await row("numbers").getByText("2 matches").waitFor();
  await rules.getByLabel("The text is").selectOption("a tool result");
  await rules.locator("[data-side=model]").getByText("Room 12, 7").waitFor();
  await row("secret").getByText("1 match").waitFor();
  await user.picture("tester-text-rules");
  expect(await user.violations()).toEqual([]);
  await rules.getByRole("link", { name: "Edit the agent" }).click();
  await page.getByRole("heading", { name: "tidy", level: 2 }).waitFor();
});

test("address fills in the form, and a failing tool shows its error", async () => {
  const user = await openTester();
  const { page } = user;
  await page.goto(
    `${fixture.server.url}/tester#tool=files.read&arguments=${encodeURIComponent('{"path":"no.txt","lines":3,"why":1}')}`,
  );
  await page.getByLabel("lines").waitFor();
  await expect.poll(() => page.getByLabel("path").inputValue()).toBe("no.txt");
  await expect.poll(() => page.getByLabel("lines").inputValue()).toBe("3");
  await page.getByText("Also sent, without a field: why").waitFor();
  await page.getByRole("button", { name: /^Run/ }).click();
  await page.getByRole("alert").getByText("invalid_arguments").waitFor();
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  await page.getByRole("textbox", { name: "Arguments" }).fill('{"path":"no.txt"}');
  await page.getByRole("button", { name: /^Run/ }).click();
  await page.getByText(/^Failed/).waitFor();
  await user.picture("tester-fails");
  expect(await user.violations()).toEqual([]);
});

test("call of a conversation is tried with other arguments", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("What time is it in Tokyo?");
  await page.locator(".card").waitFor();
  await user.settled();
  await page.locator(".card-head").click();
  await user.picture("card-try");
  await page.getByRole("link", { name: "Try other arguments" }).click();
  await page.getByLabel("timezone").waitFor();
  await expect.poll(() => page.getByLabel("timezone").inputValue()).toBe("Asia/Tokyo");
  await page.goBack();
  await page.locator(".card").waitFor();
});

test("tester works in Chinese, in the dark and on a phone", async () => {
  const user = await openTester({ locale: "zh-CN", colorScheme: "dark", width: 360, height: 740 });
  const { page } = user;
  await page.getByRole("button", { name: /demo\.weather/ }).click();
  await page.getByLabel("city").fill("巴黎");
  await page.keyboard.press("Control+Enter");
  await page.getByText(/^已完成/).waitFor();
  await page.getByRole("button", { name: "插入示例" }).click();
  await page.getByText("找到 1 个调用 · 0 条警告").waitFor();
  await user.picture("tester-phone");
  expect(await user.violations()).toEqual([]);
  const wide = () =>
    page.evaluate(
      "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > 361 && !e.closest('.pre')).map((e) => e.className).slice(0, 3)",
    );
  await expect.poll(wide).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 860 });
  await user.picture("tester-zh-dark");
  expect(await user.violations()).toEqual([]);
});
