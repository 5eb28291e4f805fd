// Turns in the history: the list, a turn with its times and its message at any moment, and a comparison of two.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { BrowserOptions, BrowserUser } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";
import { withCalls } from "../with-calls.ts";

const fixture = ServerFixture.of(withCalls);

const WEATHER = "Compare the weather in Paris, London and Tokyo";
const FAILING = "Call a tool that fails";

async function openTurns(path = "/history", options: BrowserOptions = {}): Promise<BrowserUser> {
  const user = await fixture.user(options, fixture.server, path);
  await user.page.locator("[data-row]").first().waitFor();
  return user;
}

const questions = (page: Page) => page.locator("[data-row] .asked > a").allTextContents();

test("turns are listed by day, newest first, searched and filtered in the address", async () => {
  const user = await openTurns();
  const { page } = user;
  await expect.poll(async () => (await questions(page)).slice(-2)).toEqual([FAILING, WEATHER]);
  await expect.poll(() => page.locator(".day").first().textContent()).toMatch(/^Today · /);
  await expect.poll(() => page.locator("time").first().getAttribute("title")).toMatch(/20\d\d/);
  const weather = page.locator("[data-row]").filter({ hasText: WEATHER });
  await expect.poll(() => weather.locator("td").last().textContent()).toBe("3");
  await expect.poll(() => weather.locator("td").nth(4).textContent()).toMatch(/^[\d,]+ → [\d,]+$/);
  await user.picture("turns");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("searchbox").fill("tokyo");
  await expect.poll(() => questions(page)).toEqual([WEATHER]);
  await page.reload();
  await expect.poll(() => questions(page)).toEqual([WEATHER]);
  await page.getByRole("searchbox").fill("no such thing");
  await page.getByText("No matching turns").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await expect.poll(() => questions(page)).toContain(FAILING);
  const model = (await weather.locator("bdi").nth(1).textContent()) ?? "";
  await page.getByLabel("Model", { exact: true }).selectOption(model);
  await page.getByLabel("Agent", { exact: true }).selectOption("default");
  await page.getByRole("button", { name: /^Completed/ }).click();
  await expect
    .poll(() => Object.fromEntries(new URL(page.url()).searchParams))
    .toEqual({ model, agent: "default", status: "completed" });
  await expect.poll(() => questions(page)).toContain(WEATHER);
});

test("message is shown at any moment of its turn, and can be forked there", async () => {
  const user = await openTurns("/history?q=tokyo");
  const { page } = user;
  await page.locator("[data-row] a").first().click();
  const detail = page.getByRole("region", { name: "Turn details" });
  const slider = detail.getByRole("slider", { name: "Moment of the turn" });
  const message = detail.locator(".travel-message");
  // Finished calls are grouped, as in the chat.
  const texts = message.locator(".part[data-kind=text]");
  await texts.first().waitFor();
  await expect.poll(() => detail.locator(".timeline [data-call]").count()).toBe(3);
  await expect.poll(() => detail.locator(".timeline .axis text").count()).toBeGreaterThan(1);
  await user.picture("turn");
  expect(await user.violations()).toEqual([]);

  // With the pointer: nothing at the left edge, everything at the right edge.
  // When it has stopped moving.
  await slider.hover();
  const box = await slider.boundingBox();
  if (box === null) throw new Error("the slider is nowhere");
  await page.mouse.move(box.x + box.width - 1, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + 8, { steps: 4 });
  await page.mouse.move(box.x, box.y + 8, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => texts.count()).toBe(0);
  // With the keyboard: from event to event.
  await slider.focus();
  await page.keyboard.press("Home");
  await expect.poll(() => message.getAttribute("data-count")).toBe("1");
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => message.getAttribute("data-count")).toBe("2");
  await expect.poll(() => slider.getAttribute("aria-valuetext")).toMatch(/ of /);
  await page.keyboard.press("End");
  await texts.first().waitFor();
  // Back to the moment of the first call, before any has ended.
  await page.keyboard.press("Home");
  await expect
    .poll(async () => {
      await page.keyboard.press("ArrowRight");
      return await message.locator(".card").count();
    })
    .toBe(1);
  await user.picture("turn-then");
  await detail.getByRole("button", { name: "Fork here" }).click();
  await expect.poll(() => page.url()).toMatch(/\/c\/conv_/);
  await page.locator("article[aria-busy=false] .card").first().waitFor();
  await expect.poll(() => page.locator(".card").count()).toBe(1);
});

test("running turn is updated, and its approval answered there", async () => {
  const rules = [
    {
      times: 1,
      does: [{ call: { name: "demo_calendar", arguments: { title: "Tea", when: "2026-11-23T08:00" } } }],
    },
    { times: 1, does: [{ say: "It is noted." }] },
  ];
  const server = await fixture.ownServer(Server.scripted(rules));
  const client = await server.client();
  const { events } = await client.start({ input: [{ type: "text", text: "note it" }] });
  const user = await fixture.user({}, server, "/history");
  const { page } = user;
  await expect.poll(() => page.locator("[data-row] .pill").textContent()).toBe("Waits for you");
  await page.locator("[data-row] a").first().click();
  const detail = page.getByRole("region", { name: "Turn details" });
  await detail.locator(".pill", { hasText: "Waits for you" }).waitFor();
  const question = detail.getByRole("group", { name: /wants to run/ });
  await question.waitFor();
  await detail.locator(".timeline").getByText("Waiting for you").first().waitFor();
  await user.picture("turn-question");
  expect(await user.violations()).toEqual([]);
  await detail.getByRole("button", { name: "Answer" }).click();
  await question.getByRole("button", { name: "Approve", exact: true }).click();
  await detail.locator(".markdown", { hasText: "It is noted." }).waitFor();
  await expect.poll(() => page.locator("[data-row] .pill").textContent()).toBe("Completed");
  for await (const _ of events);
});

test("two turns are compared on one axis with their differences", async () => {
  const user = await openTurns();
  const { page } = user;
  await page
    .getByRole("checkbox", { name: new RegExp(WEATHER) })
    .last()
    .check();
  await page.getByText("Choose another turn to compare with").waitFor();
  await page.getByRole("checkbox", { name: new RegExp(FAILING) }).check();
  await page.getByRole("link", { name: "Compare two turns" }).click();
  const calls = page.getByRole("row", { name: /^Tool calls/ });
  await calls.waitFor();
  await expect.poll(() => calls.getAttribute("data-differs")).toBe("true");
  await expect.poll(() => calls.locator("td").first().textContent()).toBe("3");
  await expect
    .poll(() => page.getByRole("row", { name: /^Agent/ }).getAttribute("data-differs"))
    .toBe("false");
  await expect.poll(() => page.locator(".travel-message:has(.part[data-kind=text])").count()).toBe(2);
  const ends = async () => {
    const axes = page.locator(".timeline .axis");
    return new Set(await axes.evaluateAll((all) => all.map((axis) => axis.querySelectorAll("text").length)));
  };
  await expect.poll(async () => (await ends()).size, { message: "one axis for both" }).toBe(1);
  await user.picture("turns-compared");
  expect(await user.violations()).toEqual([]);
  await page.reload();
  await calls.waitFor();
  await page.getByRole("link", { name: "Back to list" }).click();
  await page.locator("[data-row]").first().waitFor();
});

test("thousand turns are virtualized and loaded page by page", async () => {
  const user = await openTurns();
  const { page } = user;
  const rows = Array.from({ length: 1_000 }, (_, n) => ({
    turn_id: `turn_${n}`,
    agent: "default",
    input: `question ${n}`,
    answer: "",
    status: "completed",
    started_at: 1_700_000_000_000 - n * 3_600_000,
    calls: 0,
    failed_calls: 0,
  }));
  await page.route("**/v1/history/turns?*", async (route) => {
    const params = new URL(route.request().url()).searchParams;
    const from = Number(params.get("cursor") ?? 0);
    const to = from + Number(params.get("limit"));
    const next = to < rows.length ? { next: String(to) } : {};
    await route.fulfill({ json: { items: rows.slice(from, to), ...next } });
  });
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("link", { name: "question 0", exact: true }).waitFor();
  await expect
    .poll(async () => {
      await page.locator(".turns").hover();
      await page.mouse.wheel(0, 6_000);
      return await page.getByRole("link", { name: "question 999", exact: true }).count();
    })
    .toBe(1);
  await expect.poll(() => page.locator("[data-row]").count()).toBeLessThan(60);
});

test("turns view works in Chinese, in the dark and on a phone", async () => {
  const user = await openTurns("/history", {
    locale: "zh-CN",
    colorScheme: "dark",
    width: 390,
    height: 844,
  });
  const { page } = user;
  const overflow = () => page.evaluate("document.documentElement.scrollWidth");
  await user.picture("turns-phone");
  expect(await user.violations()).toEqual([]);
  await expect.poll(overflow).toBeLessThanOrEqual(390);
  await page.getByRole("link", { name: WEATHER }).last().click();
  await page.getByRole("region", { name: "轮次详情" }).locator(".travel-message .part").first().waitFor();
  await user.picture("turn-phone");
  expect(await user.violations()).toEqual([]);
  await expect.poll(overflow).toBeLessThanOrEqual(390);
  await page.keyboard.press("Escape");
  await page.locator("[data-row] a:focus").waitFor();
  await page.locator("[data-row] input").nth(0).check();
  await page.locator("[data-row] input").nth(1).check();
  await page.getByRole("link", { name: "对比两个轮次" }).click();
  await page.locator(".compared").waitFor();
  await user.picture("turns-compared-phone");
  expect(await user.violations()).toEqual([]);
  await expect.poll(overflow).toBeLessThanOrEqual(390);
});

test("pause before a retry has its own color and name", async () => {
  const rules = [
    { times: 1, does: { http: { status: 429, headers: { "retry-after": "1" } } } },
    { times: 1, does: [{ say: "Here I am." }] },
  ];
  const server = await fixture.ownServer(Server.scripted(rules));
  const client = await server.client();
  const { events } = await client.start({ input: [{ type: "text", text: "hello" }] });
  for await (const _ of events);
  const user = await fixture.user({}, server, "/history");
  const { page } = user;
  await page.locator("[data-row] a").first().click();
  const detail = page.getByRole("region", { name: "Turn details" });
  await detail.locator(".legend", { hasText: "Retry" }).waitFor();
  const colors = await detail
    .locator(".timeline-bar rect[data-kind]")
    .evaluateAll((bars) => bars.map((bar) => [bar.getAttribute("data-kind"), getComputedStyle(bar).fill]));
  expect(colors.map(([options]) => options)).toContain("retry");
  expect(new Set(colors.map(([, color]) => color)).size).toBe(
    new Set(colors.map(([options]) => options)).size,
  );
  await user.picture("turn-retry");
});
