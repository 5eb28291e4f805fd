// One browser with one page under measurement, through the protocol of its debugger.

import type { CDPSession, Page } from "playwright-core";
import { closeBrowser, Visitor } from "../browser.ts";
import { probe, type Seen } from "./probe.ts";
import { type FrameWork, frameWork } from "./work.ts";

/** What the browser counts of a page. Times are processor time, in seconds. */
export interface Counters {
  ScriptDuration: number;
  TaskDuration: number;
  JSHeapUsedSize: number;
  Nodes: number;
  JSEventListeners: number;
}

export class Tab {
  readonly page: Page;
  readonly #visitor: Visitor;
  readonly #debugger: CDPSession;

  private constructor(visitor: Visitor, session: CDPSession) {
    this.#visitor = visitor;
    this.page = visitor.page;
    this.#debugger = session;
  }

  static async open(url: string): Promise<Tab> {
    const visitor = await Visitor.come({ motion: "no-preference" });
    const session = await visitor.page.context().newCDPSession(visitor.page);
    await session.send("Performance.setTimeDomain", { timeDomain: "threadTicks" });
    await session.send("Performance.enable");
    await visitor.page.addInitScript(probe);
    await visitor.page.goto(url);
    return new Tab(visitor, session);
  }

  /** As if the processor were so many times slower. */
  async slow(times: number): Promise<void> {
    await this.#debugger.send("Emulation.setCPUThrottlingRate", { rate: times });
  }

  /** Where the time goes, as a browser's developer tools read it; what measures costs, so this is no run that counts. */
  async profile(): Promise<() => Promise<string>> {
    await this.#debugger.send("Profiler.enable");
    await this.#debugger.send("Profiler.start");
    return async () => JSON.stringify((await this.#debugger.send("Profiler.stop")).profile);
  }

  /** What each frame takes meanwhile. */
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

  /** What is left when nothing is kept that nobody holds. */
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

  end(): Promise<Seen> {
    return this.page.evaluate(() => window.bench.end());
  }

  /** Says something in the only field that every page here has. */
  async ask(question: string): Promise<void> {
    await this.page.locator("textarea").first().fill(question);
    await this.page.keyboard.press("Enter");
  }

  async settled(): Promise<void> {
    await this.page.locator("article[aria-busy=true]").waitFor({ state: "detached", timeout: 60_000 });
  }

  /** Errors of scripts. */
  get complaints(): readonly string[] {
    return this.#visitor.complaints;
  }

  async close(): Promise<void> {
    await this.#visitor.leave();
    // Each is measured in a browser that has just started.
    await closeBrowser();
  }
}
