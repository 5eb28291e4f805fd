// A browser with a fresh profile.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import {
  type Browser,
  type BrowserContext,
  chromium,
  type Locator,
  type Page,
  type Route,
} from "playwright-core";
import { visible } from "../visible/src/index.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Folder to serve the page from, instead of the page in the program: a change of the page then needs no build of the server. */
const PAGE = process.env.THROUGHLINE_PAGE;

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Time limit for events that may never come: a machine may be busy. */
const TIMEOUT_MS = 60_000;

/** Tool-call modes, in the order of the page's switch. */
const MODES = ["native", "text", "auto"] as const;
type Mode = (typeof MODES)[number];

export interface BrowserOptions {
  locale?: "en-GB" | "zh-CN";
  colorScheme?: "light" | "dark";
  width?: number;
  height?: number;
  /** Preference for motion; by default tests reduce it. */
  motion?: "reduce" | "no-preference";
  /** Whether the service worker is allowed. Tests cannot intercept its requests, so most block it. */
  worker?: "allow" | "block";
}

/** Recorded states of the screen, in order. */
export interface Recording {
  /** All cards with their states, separated by commas. */
  cards: string[];
  /** Lengths of the last message's text. */
  lengths: number[];
}

/** Shared by all tests of a file: starting it takes longer than most tests. */
let running: Promise<Browser> | undefined;
let hasScreenReader = false;
/** Chromium's headless shell, if installed: it needs a third less processor time. */
let executablePath = process.env.CHROMIUM_HEADLESS_SHELL ?? CHROMIUM;

/** Enables the accessibility tree for this file of tests. */
export function withScreenReader(): void {
  hasScreenReader = true;
}

/** Uses full Chromium for this file of tests: with notifications, and a process for each untrusted frame. */
export function withWholeBrowser(): void {
  executablePath = CHROMIUM;
}

async function browser(): Promise<Browser> {
  running ??= chromium.launch({
    executablePath,
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...(hasScreenReader ? ["--force-renderer-accessibility"] : []),
    ],
  });
  return await running;
}

/** The next test starts a new one. */
export async function closeBrowser(): Promise<void> {
  const one = running;
  running = undefined;
  await (await one)?.close();
}

/** A user with a browser context of their own: one page, and its errors. */
export class BrowserUser {
  readonly page: Page;
  /** Errors of scripts and violations of the page's policy. */
  readonly errors: string[] = [];
  /** Hosts of all requests. */
  readonly hosts = new Set<string>();
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.on("pageerror", (error) => this.errors.push(error.message));
    page.on("console", (message) => {
      const isOfNetwork = /^(Failed to load resource|WebSocket connection to )/.test(message.text());
      if (message.type() === "error" && !isOfNetwork) {
        this.errors.push(message.text());
      }
    });
    page.on("request", (request) => this.hosts.add(new URL(request.url()).host));
  }

  static async open(options: BrowserOptions = {}): Promise<BrowserUser> {
    const context = await (await browser()).newContext({
      locale: options.locale ?? "en-GB",
      colorScheme: options.colorScheme ?? "light",
      viewport: { width: options.width ?? 1280, height: options.height ?? 860 },
      reducedMotion: options.motion ?? "reduce",
      serviceWorkers: options.worker ?? "block",
    });
    // For each of its tabs.
    context.setDefaultTimeout(TIMEOUT_MS);
    const permissions = ["clipboard-read", "clipboard-write"];
    // A page from a folder has no IP address, so Chromium treats it as a public one that accesses a local server.
    if (PAGE !== undefined) permissions.push("local-network-access");
    await context.grantPermissions(permissions);
    if (PAGE !== undefined && options.worker !== "allow")
      await context.route(isOfThePage, (route) => fromFolder(route, PAGE));
    return new BrowserUser(context, await context.newPage());
  }

  /** Opens a path of the page with a key, as if for the first time. */
  async openPath(url: string, key: string, path = "/", size = { width: 1280, height: 860 }): Promise<void> {
    await this.page.setViewportSize(size);
    // From an empty page: a new hash alone would not reload.
    await this.page.goto("about:blank");
    await this.page.goto(`${url}/#token=${key}`);
    await this.page.locator("textarea").first().waitFor();
    if (path === "/") return;
    await this.page.goto("about:blank");
    await this.page.goto(url + path);
  }

  /** Sets the theme of the system. */
  async inTheme(theme: "light" | "dark"): Promise<void> {
    await this.page.emulateMedia({ colorScheme: theme });
    await this.page.locator(`html[data-theme=${theme}]`).waitFor();
  }

  /** Another tab of the same browser. */
  async tab(): Promise<Page> {
    return await this.#context.newPage();
  }

  /** Types into the composer and presses Enter. */
  async type(text: string): Promise<void> {
    const field = this.page.locator("form:has(.composer-row) textarea");
    await field.fill(text);
    await field.press("Enter");
  }

  /** Sends a message, and waits until it and its answer are shown. */
  async send(text: string): Promise<void> {
    await this.type(text);
    const pattern = new RegExp(`^${visible(text).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`);
    await this.page.locator(".user-bubble").last().filter({ hasText: pattern }).waitFor();
  }

  /** Opens the picker of models and modes. */
  async openPicker(): Promise<Locator> {
    await this.page.locator(".picker-button").click();
    const picker = this.page.locator("dialog.picker");
    await picker.locator("fieldset.segments").waitFor();
    return picker;
  }

  async closePicker(): Promise<void> {
    await this.page.keyboard.press("Escape");
    await this.page.locator("dialog.picker").waitFor({ state: "detached" });
  }

  /** Opens the dialog that connects models. */
  async openModels(): Promise<void> {
    await (await this.openPicker()).locator("footer button").click();
    await this.page.locator("dialog.models").waitFor();
  }

  /** Chooses the tool-call mode. */
  async chooseMode(mode: Mode): Promise<void> {
    const picker = await this.openPicker();
    // The input itself is visually hidden, and its label depends on the language.
    await picker.locator("fieldset.segments label").nth(MODES.indexOf(mode)).click();
    await this.closePicker();
  }

  async isMode(mode: Mode): Promise<boolean> {
    const picker = await this.openPicker();
    const isChosen = await picker.locator("fieldset.segments input").nth(MODES.indexOf(mode)).isChecked();
    await this.closePicker();
    return isChosen;
  }

  /** Records the thread from now on: each change of the cards, and each length of the text. */
  async record(): Promise<void> {
    await this.page.evaluate(() => {
      const recording: Recording = { cards: [], lengths: [] };
      (window as unknown as { recording: Recording }).recording = recording;
      const keep = <T>(list: T[], value: T): void => {
        if (list.at(-1) !== value) list.push(value);
      };
      const capture = (): void => {
        const cards = [...document.querySelectorAll(".card")];
        keep(
          recording.cards,
          cards
            .map((card) => `${card.querySelector(".name")?.textContent} ${card.getAttribute("data-status")}`)
            .join(", "),
        );
        const texts = [...document.querySelectorAll("article:last-of-type .part[data-kind=text]")];
        keep(
          recording.lengths,
          texts.reduce((sum, text) => sum + (text.textContent?.length ?? 0), 0),
        );
      };
      const options = {
        subtree: true,
        childList: true,
        characterData: true,
        attributes: true,
        attributeFilter: ["data-status"],
      };
      new MutationObserver(capture).observe(document.body, options);
    });
  }

  async recording(): Promise<Recording> {
    return await this.page.evaluate(() => (window as unknown as { recording: Recording }).recording);
  }

  /** Waits until the running turn has ended. */
  async settled(): Promise<void> {
    await this.page.locator("article[aria-busy=true]").waitFor({ state: "detached" });
  }

  /** The cards, each with its tool, its state and whether it is open. */
  async cards(): Promise<string[]> {
    return await this.page
      .locator(".card")
      .evaluateAll((cards) =>
        cards.map(
          (card) => `${card.querySelector(".name")?.textContent} ${card.getAttribute("data-status")}`,
        ),
      );
  }

  /** Violations of accessibility rules, one per line. */
  async violations(): Promise<string[]> {
    // The page's policy allows no injected script, but the debugger's own context does.
    const found: unknown = await this.page.evaluate(`(async () => {
      ${AXE}
      // Colors are not final during a transition; endless animations are skipped.
      const ends = (animation) => animation.effect?.getComputedTiming().endTime !== Infinity;
      await Promise.allSettled(document.getAnimations().filter(ends).map((animation) => animation.finished));
      // All rules of axe, including those that are off by default, except for the contrast of 7 to 1.
      const values = axe.getRules().map(({ ruleId }) => ruleId).filter((rule) => rule !== "color-contrast-enhanced");
      const { violations } = await axe.run(document, { runOnly: { type: "rule", values } });
      return violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ": " + node.html.slice(0, 160) + " " + (node.failureSummary ?? "")));
    })()`);
    return Array.isArray(found) ? found.map(String) : [String(found)];
  }

  /** Takes a screenshot if `THROUGHLINE_PICTURES` names a folder. */
  async picture(name: string): Promise<void> {
    const folder = process.env.THROUGHLINE_PICTURES;
    if (folder !== undefined) await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }

  async close(): Promise<void> {
    await this.#context.close();
  }
}

/** Frames for untrusted content come from the server, with its policy. */
function isOfThePage({ hostname, pathname }: URL): boolean {
  return hostname === "127.0.0.1" && !/^\/(v1|docs|home|frames|approve)\b/.test(pathname);
}

/** Serves a file with the headers of the server, including its policy. */
async function fromFolder(route: Route, folder: string): Promise<void> {
  const { pathname } = new URL(route.request().url());
  const isFile = /\.\w+$/.test(pathname);
  if (isFile) return await route.fulfill({ path: join(folder, pathname) });
  // A program without a page shows build instructions at `/`, under another policy; missing files get the page's policy.
  const response = await route.fetch({ url: new URL("/no-such-view", route.request().url()).href });
  const page = { status: 200, contentType: "text/html", path: join(folder, "index.html") };
  await route.fulfill({ response, ...page });
}
