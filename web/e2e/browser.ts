// A browser that has never been here.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface Kind {
  locale?: "en-GB" | "zh-CN";
  colorScheme?: "light" | "dark";
  width?: number;
  height?: number;
}

/** A visitor: one browser with one page, and everything that it complained of. */
export class Visitor {
  readonly page: Page;
  /** Errors of scripts and of the page's policy. */
  readonly complaints: string[] = [];
  /** Hosts that anything was asked of. */
  readonly hosts = new Set<string>();
  readonly #context: BrowserContext;
  readonly #folder: string;

  private constructor(context: BrowserContext, page: Page, folder: string) {
    this.#context = context;
    this.page = page;
    this.#folder = folder;
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
        this.complaints.push(message.text());
      }
    });
    page.on("request", (request) => this.hosts.add(new URL(request.url()).host));
  }

  static async come(kind: Kind = {}): Promise<Visitor> {
    const folder = mkdtempSync(join(tmpdir(), "throughline-browser-"));
    const context = await chromium.launchPersistentContext(folder, {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      headless: true,
      locale: kind.locale ?? "en-GB",
      colorScheme: kind.colorScheme ?? "light",
      viewport: { width: kind.width ?? 1280, height: kind.height ?? 860 },
      reducedMotion: "reduce",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = context.pages()[0] ?? (await context.newPage());
    page.setDefaultTimeout(15_000);
    return new Visitor(context, page, folder);
  }

  /** Another tab of the same browser. */
  async tab(): Promise<Page> {
    return await this.#context.newPage();
  }

  async say(text: string): Promise<void> {
    await this.page.locator("textarea").first().fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** Waits until the turn that runs has ended. */
  async settled(): Promise<void> {
    await this.page.locator("article[aria-busy=true]").waitFor({ state: "detached", timeout: 40_000 });
  }

  /** The cards, each by its tool, its state and whether it is open. */
  async cards(): Promise<string[]> {
    return await this.page
      .locator(".card")
      .evaluateAll((cards) =>
        cards.map(
          (card) => `${card.querySelector(".name")?.textContent} ${card.getAttribute("data-status")}`,
        ),
      );
  }

  /** What breaks the rules of accessibility, in a line each. */
  async violations(): Promise<string[]> {
    // The page's policy lets no script in; the debugger's own context is not the page's.
    const found: unknown = await this.page.evaluate(`(async () => {
      ${AXE}
      const tags = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"];
      const { violations } = await axe.run(document, { runOnly: { type: "tag", values: tags } });
      return violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ": " + node.html.slice(0, 160) + " " + (node.failureSummary ?? "")));
    })()`);
    return Array.isArray(found) ? found.map(String) : [String(found)];
  }

  /** A picture for people to look at, where `THROUGHLINE_PICTURES` names a folder. */
  async picture(name: string): Promise<void> {
    const folder = process.env.THROUGHLINE_PICTURES;
    if (folder !== undefined) await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }

  async leave(): Promise<void> {
    await this.#context.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
