// Measurements besides streaming: start, a long conversation, a large result, and memory after fifty turns.

import { median, most, OURS, percentile, rounded } from "./figures.ts";
import type { MeasuredServer } from "./prepare.ts";
import { Tab } from "./tab.ts";

const PAUSE_MS = 16;

/** Time from an empty cache to an editable composer. */
export async function start(target: MeasuredServer, times: number) {
  const rows: { script: number; wall: number; long: number; heap: number }[] = [];
  for (let time = 0; time < times; time += 1) {
    const tab = await Tab.open("about:blank");
    const before = await tab.counters();
    const began = Date.now();
    await tab.page.goto(target.url);
    await tab.page.locator("textarea").first().waitFor();
    await tab.page.locator("textarea").first().press("x");
    const wall = Date.now() - began;
    const after = await tab.counters();
    const { long } = await tab.end();
    const { JSHeapUsedSize } = await tab.collected();
    rows.push({
      script: (after.ScriptDuration - before.ScriptDuration) * 1_000,
      wall,
      long: most(long),
      heap: JSHeapUsedSize / 1e6,
    });
    await tab.close();
  }
  return {
    subject: OURS,
    scenario: "start",
    script_ms: rounded(median(rows.map((row) => row.script))),
    wall_ms: median(rows.map((row) => row.wall)),
    long_max_ms: rounded(most(rows.map((row) => row.long)), 0),
    heap_mb: rounded(median(rows.map((row) => row.heap))),
  };
}

/** Scrolls through a long conversation, from its end to its beginning and back. */
export async function scroll(target: MeasuredServer, messages: number) {
  const conversation = await target.conversation(messages, "rate=0 seconds=1 cards=5 rows=4");
  const tab = await Tab.open(target.at(`/c/${conversation}`));
  const article = tab.page.getByRole("article", { name: "Assistant message" });
  await article.first().waitFor();
  const older = tab.page.getByRole("button", { name: "Load earlier messages" });
  while ((await older.count()) > 0) {
    const shown = await article.count();
    await older.click();
    await tab.page.waitForFunction((n) => document.querySelectorAll("article").length > n * 2, shown);
  }
  await tab.page.mouse.move(500, 400);
  await tab.begin();
  const before = await tab.counters();
  const there = async (): Promise<void> => {
    for (const direction of [-1, 1]) {
      for (let turn = 0; turn < 200; turn += 1) {
        await tab.page.mouse.wheel(0, direction * 240);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  };
  await there();
  const after = await tab.counters();
  const seen = await tab.end();
  // Repeated with a trace, whose overhead must not count above.
  const work = await tab.frameWork(there);
  const p95 = (kind: "page" | "painting"): number =>
    rounded(
      percentile(
        work.map((frame) => frame[kind]),
        0.95,
      ),
    );
  const { Nodes, JSHeapUsedSize } = await tab.collected();
  const row = {
    subject: OURS,
    scenario: "scroll",
    messages: await article.count(),
    script_s: rounded(after.ScriptDuration - before.ScriptDuration, 2),
    long_tasks: seen.long.length,
    long_max_ms: rounded(most(seen.long), 0),
    frames: seen.frames.length,
    frame_p95_ms: rounded(percentile(seen.frames, 0.95)),
    frame_p99_ms: rounded(percentile(seen.frames, 0.99)),
    frames_over_25: seen.frames.filter((ms) => ms > 25).length,
    work_p95_ms: p95("page"),
    painting_p95_ms: p95("painting"),
    heap_mb: rounded(JSHeapUsedSize / 1e6),
    nodes: Nodes,
  };
  await tab.close();
  return row;
}

/** Opens a card with two megabytes, then the whole result. */
export async function big(target: MeasuredServer) {
  const conversation = await target.conversation(1, "rate=0 seconds=1 cards=1 rows=26000");
  const tab = await Tab.open(target.at(`/c/${conversation}`));
  await tab.page.locator(".card-head").waitFor();
  const opened = await shownAfter(tab, ".card-head", ".card-body");
  const all = tab.page.getByRole("button", { name: /Load all/ });
  const size = await all.innerText();
  await tab.begin();
  const whole = await shownAfter(tab, ".card-body button:has-text('Load all')", undefined);
  const seen = await tab.end();
  await tab.close();
  return {
    subject: OURS,
    scenario: "big",
    size: size.replace("Load all ", ""),
    opened_ms: rounded(opened),
    loaded_ms: rounded(whole),
    long_max_ms: rounded(most(seen.long), 0),
  };
}

/** Time from a click to the frame in which an element appears or disappears. */
async function shownAfter(tab: Tab, clicked: string, shown: string | undefined): Promise<number> {
  const target = tab.page.locator(clicked).first();
  await target.evaluate((element, selector) => {
    const there = (): boolean =>
      selector === undefined ? !element.isConnected : document.querySelector(selector) !== null;
    const state = window as unknown as { shownAfter: Promise<number> };
    state.shownAfter = new Promise((resolve) => {
      element.addEventListener("pointerdown", () => {
        const began = performance.now();
        const check = (): void => {
          if (!there()) return void requestAnimationFrame(check);
          // After this frame it has been painted.
          setTimeout(() => resolve(performance.now() - began));
        };
        check();
      });
    });
  }, shown);
  await target.click();
  return await tab.page.evaluate(() => (window as unknown as { shownAfter: Promise<number> }).shownAfter);
}

/** Turn after turn, each in a conversation of its own: memory of conversations that are closed. */
export async function growth(target: MeasuredServer, first: number, turns: number) {
  const tab = await Tab.open(target.url);
  const measure = async () => {
    await tab.page.getByRole("link", { name: "New conversation" }).click();
    await tab.page.getByRole("heading", { name: /What can I do/ }).waitFor();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return await tab.collected();
  };
  let before = await measure();
  for (let turn = 1; turn <= turns; turn += 1) {
    await tab.page.getByRole("link", { name: "New conversation" }).click();
    await tab.ask(`growth ${turn} rate=0 seconds=1 cards=3 rows=40`);
    await tab.page.locator("article[aria-busy=false]").last().waitFor();
    await tab.page.getByRole("button", { name: "Regenerate" }).waitFor();
    if (turn === first) before = await measure();
  }
  const after = await measure();
  await tab.close();
  return {
    subject: OURS,
    scenario: "growth",
    turns: turns - first,
    heap_mb: rounded((after.JSHeapUsedSize - before.JSHeapUsedSize) / 1e6, 2),
    nodes: after.Nodes - before.Nodes - (await undoable(turns - first)),
    listeners: after.JSEventListeners - before.JSEventListeners,
  };
}

/** Memory that the field itself keeps for undo. */
async function undoable(times: number): Promise<number> {
  const tab = await Tab.open("about:blank");
  await tab.page.setContent("<textarea></textarea>");
  const field = tab.page.locator("textarea");
  let before = 0;
  for (let time = 0; time <= times; time += 1) {
    await field.fill(`growth ${time}`);
    await field.evaluate((element: HTMLTextAreaElement) => {
      element.value = "";
    });
    if (time === 0) before = (await tab.collected()).Nodes;
  }
  const after = (await tab.collected()).Nodes;
  await tab.close();
  return after - before;
}
