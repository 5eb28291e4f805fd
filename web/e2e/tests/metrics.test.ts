import { expect, test } from "vitest";
import type { BrowserOptions, BrowserUser } from "../browser.ts";
import { ServerFixture } from "../server-fixture.ts";
import { withCalls } from "../with-calls.ts";

const fixture = ServerFixture.of(withCalls);

/** A user at the metrics of the last hour. */
async function openMetrics(options: BrowserOptions = {}): Promise<BrowserUser> {
  const user = await fixture.user(options, fixture.server, "/stats?range=hour");
  await user.page.locator(".tile").first().waitFor();
  return user;
}

test("tiles show figures of recent turns, with links to their calls", async () => {
  const user = await openMetrics();
  const { page } = user;
  const tile = (name: string) => page.getByRole("listitem", { name, exact: true });
  const figures = async (name: string): Promise<string[]> => await tile(name).locator("dd").allTextContents();
  await expect.poll(async () => (await figures("Tool calls"))[1]).toBe("2");
  const [calls] = await figures("Tool calls");
  expect(Number(calls)).toBeGreaterThanOrEqual(4);
  for (const figure of await figures("Time to first token")) expect(figure).toMatch(/^[\d.]+ m?s$/);
  for (const figure of await figures("Tokens per second")) expect(figure).toMatch(/^[\d.]+$/);
  await expect.poll(async () => (await figures("Error rate"))[0]).toMatch(/^[1-9]\d* %$/);
  await expect.poll(() => figures("Waiting for you")).toEqual(["0"]);
  const weather = page.getByRole("row", { name: /^demo\.weather/ });
  await expect.poll(() => weather.locator("td").first().textContent()).toBe("3");
  const some = expect.stringMatching(/^[1-9][\d,.]*( k)?$/);
  await expect.poll(async () => (await figures("Tokens")).slice(0, 2)).toEqual([some, some]);
  await expect
    .poll(() => page.getByRole("listitem", { name: "Calls detected" }).textContent())
    .toContain("at least 95 %");
  await expect.poll(() => page.getByRole("listitem", { name: "Changes of model or mode" }).count()).toBe(1);
  await expect.poll(() => tile("Tool duration").textContent()).toContain("p95 limit: at most 3.0 s");
  await expect
    .poll(() => page.getByRole("table", { name: "Why calls failed" }).locator("tbody tr").count())
    .toBe(1);
  await expect
    .poll(() => page.getByRole("table", { name: "By conversation" }).locator("tbody tr").count())
    .toBe(2);
  await page.locator(".metrics").evaluate((view) => view.scrollTo(0, 0));
  await user.picture("metrics-top");
  await page.locator("summary").click();
  await user.picture("metrics");
  expect(await user.violations()).toEqual([]);

  // The default range has data: these turns are from the last hour.
  await page.goto(`${fixture.server.url}/stats`);
  await page
    .getByRole("navigation", { name: "Time range" })
    .locator('[aria-current="true"]', { hasText: "1 h" })
    .waitFor();
  await tile("Tokens").waitFor();
  const ofModel = page.getByRole("table", { name: "By model" }).getByRole("link").first();
  const model = (await ofModel.textContent()) ?? "";
  await ofModel.click();
  await expect.poll(() => new URL(page.url()).searchParams.get("model")).toBe(model);
  await expect.poll(() => page.locator("[data-row]").count()).toBe(2);
  await page.goBack();
  await tile("Error rate").waitFor();

  await tile("Error rate").getByRole("link").click();
  await page.getByRole("button", { name: /^Any failure/, pressed: true }).waitFor();
  await page.locator("[data-row]").first().waitFor();
  const states = async () => new Set(await page.locator("[data-row] .pill").allTextContents());
  await expect.poll(states).toEqual(new Set(["Failed"]));
  await page.goBack();
  await page.getByRole("link", { name: "demo.weather" }).click();
  await expect.poll(() => page.locator("[data-row]").count()).toBe(3);
  await page.goBack();
  await tile("Tool duration").getByRole("link").click();
  await page.getByRole("button", { name: "Longer than 1 s", pressed: true }).click();
  await expect.poll(() => page.locator("[data-row]").count()).toBe(Number(calls));
});

test("another range is chosen, and new data appears without a reload", async () => {
  const user = await openMetrics();
  const { page } = user;
  await page.getByRole("link", { name: "30 d", exact: true }).click();
  await expect.poll(() => page.url()).toContain("range=month");
  const turns = page.getByRole("listitem", { name: "Tool calls", exact: true }).locator("dd").nth(1);
  await expect.poll(() => turns.textContent()).toBe("2");
  const chat = await user.tab();
  await chat.goto(`${fixture.server.url}/`);
  await chat.locator("textarea").fill("What time is it?");
  await chat.keyboard.press("Enter");
  await chat.locator("article[aria-busy=false]").last().waitFor();
  await page.bringToFront();
  await expect.poll(() => turns.textContent()).toBe("3");
});

test("frames are watched during an answer, and reported", async () => {
  const user = await openMetrics();
  const { page } = user;
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  const report = page.waitForRequest((request) => request.url().endsWith("/v1/telemetry/frames"));
  await user.send("Compare the weather in Paris, London and Tokyo");
  const { jank_frames, window_ms } = (await report).postDataJSON();
  expect(window_ms).toBeGreaterThan(0);
  await page.getByRole("link", { name: "Metrics" }).click();
  const tile = page.getByRole("listitem", { name: "Late frames" });
  await expect.poll(() => tile.locator("dd").textContent()).toBe(String(jank_frames));
});

test.each<[string, BrowserOptions]>([
  ["zh-dark", { locale: "zh-CN", colorScheme: "dark" }],
  ["phone", { width: 360, height: 740 }],
  ["phone-zh-dark", { locale: "zh-CN", colorScheme: "dark", width: 360, height: 740 }],
])("metrics are complete and readable: %s", async (name, options) => {
  const user = await openMetrics(options);
  const { page } = user;
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  await user.picture(`metrics-${name}`);
  await page.locator("summary").click();
  await user.picture(`metrics-${name}-table`);
  expect(await user.violations()).toEqual([]);
});
