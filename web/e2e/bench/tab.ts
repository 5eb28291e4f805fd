// One browser with one measured page, controlled by the DevTools protocol.

import type { CDPSession, Page } from "playwright-core";
import { BrowserUser, closeBrowser } from "../browser.ts";
import { type Measurements, probe } from "./probe.ts";
import { type FrameWork, frameWork } from "./work.ts";

/** Counters of the browser for a page. Times are processor time, in seconds. */
export interface Counters {
  ScriptDuration: number;
  TaskDuration: number;
  JSHeapUsedSize: number;
  Nodes: number;
  JSEventListeners: number;
}

export class Tab {
  readonly page: Page;
  readonly #visitor: BrowserUser;
  readonly #debugger: CDPSession;

  private constructor(user: BrowserUser, session: CDPSession) {
    this.#visitor = user;
    this.page = user.page;
    this.#debugger = session;
  }

  static async open(url: string): Promise<Tab> {
    const user = await BrowserUser.open({ motion: "no-preference" });
    const session = await user.page.context().newCDPSession(user.page);
    await session.send("Performance.setTimeDomain", { timeDomain: "threadTicks" });
    await session.send("Performance.enable");
    await user.page.addInitScript(probe);
    await user.page.goto(url);
    return new Tab(user, session);
  }

  /** Throttles the processor by this factor. */
  async slow(times: number): Promise<void> {
    await this.#debugger.send("Emulation.setCPUThrottlingRate", { rate: times });
  }

  /** Records a CPU profile for developer tools. Profiling costs time, so such a run does not count. */
  async profile(): Promise<() => Promise<string>> {
    await this.#debugger.send("Profiler.enable");
    await this.#debugger.send("Profiler.start");
    return async () => JSON.stringify((await this.#debugger.send("Profiler.stop")).profile);
  }

  /** Work of each frame meanwhile. */
  frameWork(happen: () => Promise<void>): Promise<FrameWork[]> {
    return frameWork(this.#debugger, happen);
  }

  async counters(): Promise<Counters> {
    const { metrics } = await this.#debugger.send("Performance.getMetrics");
    const value = (name: string): number => metrics.find((metric) => metric.name === name)?.value ?? 0;
    return {
      ScriptDuration: value("ScriptDuration"),
      TaskDuration: value("TaskDuration"),
      JSHeapUsedSize: value("JSHeapUsedSize"),
      Nodes: value("Nodes"),
      JSEventListeners: value("JSEventListeners"),
    };
  }

  /** Counters after a garbage collection. */
  async collected(): Promise<Counters> {
    await this.#debugger.send("HeapProfiler.collectGarbage");
    await this.#debugger.send("HeapProfiler.collectGarbage");
    return await this.counters();
  }

  begin(): Promise<void> {
    return this.page.evaluate(() => window.bench.begin());
  }

  lastStamp(): Promise<number> {
    return this.page.evaluate(() => window.bench.last());
  }

  end(): Promise<Measurements> {
    return this.page.evaluate(() => window.bench.end());
  }

  /** Sends a question with the page's only field. */
  async ask(question: string): Promise<void> {
    await this.page.locator("textarea").first().fill(question);
    await this.page.keyboard.press("Enter");
  }

  async settled(): Promise<void> {
    await this.page.locator("article[aria-busy=true]").waitFor({ state: "detached", timeout: 60_000 });
  }

  /** Errors of scripts. */
  get complaints(): readonly string[] {
    return this.#visitor.errors;
  }

  async close(): Promise<void> {
    await this.#visitor.close();
    // Each scenario runs in a fresh browser.
    await closeBrowser();
  }
}
