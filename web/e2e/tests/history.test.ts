import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { BrowserOptions, BrowserUser } from "../browser.ts";
import { ServerFixture } from "../server-fixture.ts";
import { withCalls } from "../with-calls.ts";

const fixture = ServerFixture.of(withCalls);

/** A user at the list of calls. */
async function openCalls(path: string, options: BrowserOptions = {}): Promise<BrowserUser> {
  const user = await fixture.user(options, fixture.server, path);
  await user.page.locator("[data-row]").first().waitFor();
  return user;
}

/** Tools of the list with their states. */
async function rows(user: BrowserUser): Promise<string[]> {
  return await user.page
    .locator("[data-row]")
    .evaluateAll((rows) =>
      rows.map((row) => `${row.querySelector("a")?.textContent} ${row.querySelector(".pill")?.textContent}`),
    );
}

test("calls of the chat are listed, newest first, and filtered in the address", async () => {
  const user = await openCalls("/history/calls");
  const { page } = user;
  await expect.poll(async () => (await rows(user)).slice(-3)).toEqual(Array(3).fill("demo.weather Done"));
  const all = await rows(user);
  expect(all[0]).toMatch(/Failed$/);
  await user.picture("history");
  expect(await user.violations()).toEqual([]);

  await page.getByRole("button", { name: /^Failed/ }).click();
  await expect.poll(() => rows(user)).toEqual(all.filter((row) => row.endsWith("Failed")));
  await page.getByRole("button", { name: /^All/ }).click();
  await page.getByRole("searchbox").fill("tokyo");
  await expect.poll(() => rows(user)).toEqual(["demo.weather Done"]);
  await page.reload();
  await expect.poll(() => rows(user)).toEqual(["demo.weather Done"]);
  await expect.poll(() => page.getByRole("searchbox").inputValue()).toBe("tokyo");
  await page.getByRole("searchbox").fill("no such thing");
  await page.getByText("No matching calls").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await expect.poll(() => rows(user)).toEqual(all);
  await page.getByLabel("Tool", { exact: true }).selectOption("demo.weather");
  await expect.poll(() => rows(user)).toEqual(Array(3).fill("demo.weather Done"));
});

test("details show the course of the call, the model's view, and the exact times of the turn", async () => {
  const user = await openCalls("/history/calls?tool=demo.weather");
  const { page } = user;
  await page.locator("[data-row] a").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  const detail = page.getByRole("region", { name: "Call details" });
  await detail.getByText("Arguments complete").waitFor();
  await detail.getByText("What the model saw").waitFor();
  const waterfall = detail.locator(".waterfall");
  await waterfall.waitFor();
  const ms = (selector: string) =>
    waterfall
      .locator(selector)
      .evaluateAll((cells) => cells.reduce((sum, cell) => sum + Number(cell.getAttribute("data-ms")), 0));
  const id = new URL(page.url()).searchParams.get("call") ?? "";
  const path = { turn_id: id.slice(0, id.lastIndexOf(".")) };
  const client = await fixture.server.client();
  const { wall_ms } = await client.call("GET /v1/turns/{turn_id}/waterfall", { path });
  expect(wall_ms).toBeGreaterThan(0);
  await expect.poll(() => ms("tbody [data-ms]")).toBe(wall_ms);
  await expect.poll(() => ms("tfoot [data-ms]")).toBe(wall_ms);
  await user.picture("history-detail");
  await waterfall.scrollIntoViewIfNeeded();
  await user.picture("history-waterfall");
  expect(await user.violations()).toEqual([]);

  await detail.getByRole("button", { name: "Run again" }).click();
  await detail.getByRole("heading", { name: /^Rerun output ·/ }).waitFor();
  await detail.getByRole("button", { name: "Show only this turn" }).click();
  await page.getByRole("button", { name: "Remove filter: This turn" }).waitFor();
  await detail.getByRole("link", { name: "Close" }).click();
  await detail.waitFor({ state: "detached" });
  await page.goBack();
  await detail.waitFor();
});

test("waiting call is updated, and links to its conversation", async () => {
  const user = await openCalls("/history/calls");
  const { page } = user;
  const chat = await user.tab();
  await chat.goto(`${fixture.server.url}/`);
  await chat.locator("textarea").fill("Put a meeting into my calendar tomorrow at 9");
  await chat.keyboard.press("Enter");
  await chat.getByRole("button", { name: /^Approve/ }).waitFor();
  await page.bringToFront();
  await page.getByRole("button", { name: "Refresh" }).click();
  await expect.poll(async () => (await rows(user))[0]).toBe("demo.calendar Waiting for you");
  await page.getByRole("link", { name: "demo.calendar" }).click();
  await page
    .getByRole("region", { name: "Call details" })
    .getByText("Approval requested", { exact: true })
    .waitFor();
  await page
    .getByRole("region", { name: "Call details" })
    .getByRole("group", { name: /wants to run/ })
    .waitFor();
  await user.picture("history-waiting");
  expect(await page.getByRole("button", { name: "Run again" }).count()).toBe(0);
  expect(await user.violations()).toEqual([]);
  // Answered in the details.
  await page
    .getByRole("region", { name: "Call details" })
    .getByRole("button", { name: "Approve", exact: true })
    .click();
  await expect.poll(async () => (await rows(user))[0]).toBe("demo.calendar Done");
  await page.getByText("Finished · Done").waitFor();
  await page.getByRole("link", { name: "Try other arguments" }).waitFor();
  // The tool changes something, so its outlook is shown first.
  expect(await page.getByRole("button", { name: "Run again" }).count()).toBe(0);
  await page.getByRole("link", { name: "Try other arguments" }).click();
  await expect.poll(() => new URL(page.url()).pathname).toBe("/tester");
  await expect
    .poll(() => page.locator("main input").evaluateAll((all) => all.map((one) => one.getAttribute("value"))))
    .toContain("Meeting");
  await page.goBack();
  await page.getByRole("link", { name: "Open conversation" }).click();
  await page.locator(".card").first().waitFor();
});

test("thousand calls are virtualized and loaded page by page", async () => {
  const user = await openCalls("/history/calls");
  const { page } = user;
  const rows = Array.from({ length: 1_000 }, (_, n) => ({
    tool_id: `turn_1.${n}`,
    turn_id: "turn_1",
    step: 1,
    tool_name: `tool.number_${n}`,
    source: "demo",
    effect: "read",
    status: "success",
    arguments: "{}",
    started_at: 1_000_000 - n,
  }));
  await page.route("**/v1/history/calls?*", async (route) => {
    const params = new URL(route.request().url()).searchParams;
    const from = Number(params.get("cursor") ?? 0);
    const to = from + Number(params.get("limit"));
    const next = to < rows.length ? { next: String(to) } : {};
    await route.fulfill({ json: { items: rows.slice(from, to), ...next } });
  });
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("link", { name: "tool.number_0", exact: true }).waitFor();
  await expect
    .poll(async () => {
      await page.locator(".history").hover();
      await page.mouse.wheel(0, 4_000);
      return await page.getByRole("link", { name: "tool.number_999", exact: true }).count();
    })
    .toBe(1);
  await expect.poll(() => page.locator("[data-row]").count()).toBeLessThan(60);
  await user.picture("history-thousand");
  await page.getByText("Loading more…").waitFor({ state: "detached" });
  // On a phone there are fewer columns, with the full width.
  await page.setViewportSize({ width: 360, height: 740 });
  const right = async (selector: string) =>
    (
      await page.locator(selector).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().right))
    )[0];
  await expect
    .poll(async () => [await right(".history th:nth-child(4)"), await right(".history")])
    .toSatisfy(([column, whole]) => column === whole);
});

test("export contains the filtered calls only", async () => {
  const user = await openCalls("/history/calls?tool=demo.weather");
  const { page } = user;
  const take = async (name: string): Promise<string[]> => {
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name }).click();
    return readFileSync(await (await download).path(), "utf8")
      .trim()
      .split(/\r?\n/);
  };
  const lines = await take("Export JSONL");
  expect(lines.map((line) => JSON.parse(line).tool_name)).toEqual(Array(3).fill("demo.weather"));
  const table = await take("Export CSV");
  expect(table.length).toBe(4);
  expect(table[0]).toContain("tool_name");
});

test("calls view works in Chinese, in the dark and on a phone", async () => {
  const user = await openCalls("/history/calls", {
    locale: "zh-CN",
    colorScheme: "dark",
    width: 360,
    height: 740,
  });
  const { page } = user;
  const overflow = () => page.evaluate("document.documentElement.scrollWidth");
  await user.picture("history-phone");
  expect(await user.violations()).toEqual([]);
  await expect.poll(overflow).toBeLessThanOrEqual(360);
  await page.locator("[data-row]").first().click();
  await page.getByRole("region", { name: "调用详情" }).locator(".waterfall").waitFor();
  await user.picture("history-phone-detail");
  expect(await user.violations()).toEqual([]);
  await expect.poll(overflow).toBeLessThanOrEqual(360);
  await page.keyboard.press("Escape");
  await page.locator("[data-row] a:focus").waitFor();
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.locator("[data-row]").first().click();
  await page.locator(".waterfall").waitFor();
  await user.picture("history-zh-dark");
  expect(await user.violations()).toEqual([]);
});
