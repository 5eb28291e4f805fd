// A browser in which nobody has been here before.

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

/** A folder to take the page from, in place of the one in the program: a change of the page then needs no build of the server. */
const PAGE = process.env.THROUGHLINE_PAGE;

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** For what does not come at all: a machine may be busy. */
const PATIENCE_MS = 60_000;

/** How calls travel, in the order of the page's switch. */
const MODES = ["native", "text", "auto"] as const;
type Mode = (typeof MODES)[number];

export interface Kind {
  locale?: "en-GB" | "zh-CN";
  colorScheme?: "light" | "dark";
  width?: number;
  height?: number;
  /** Whether what moves moves; tests look at pictures that stand still. */
  motion?: "reduce" | "no-preference";
  /** With the service worker of the program's page. What it fetches, no test can stop on its way, so others go without. */
  worker?: "allow" | "block";
}

/** What was on the screen, one after another. */
export interface Seen {
  /** All cards with their states, comma between. */
  cards: string[];
  /** Characters of the last message's text. */
  lengths: number[];
}

/** One for all: to start it takes longer than most tests. */
let running: Promise<Browser> | undefined;
let hasScreenReader = false;
/** Chromium without windows, where it is installed: it does the same work with two thirds of the processor. */
let executablePath = process.env.CHROMIUM_HEADLESS_SHELL ?? CHROMIUM;

/** The browser of this file of tests has a screen reader: without one, it makes no tree of what nobody sees. */
export function withScreenReader(): void {
  hasScreenReader = true;
}

/** The browser of this file of tests is a whole one: with notifications, and a process of its own for each frame that is not trusted. */
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

/** Whoever comes next finds a new one. */
export async function closeBrowser(): Promise<void> {
  const one = running;
  running = undefined;
  await (await one)?.close();
}

/** A visitor, who shares nothing with others: one page, and everything that it complained of. */
export class Visitor {
  readonly page: Page;
  /** Errors of scripts and of the page's policy. */
  readonly complaints: string[] = [];
  /** Hosts that anything was asked of. */
  readonly hosts = new Set<string>();
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      const isOfNetwork = /^(Failed to load resource|WebSocket connection to )/.test(message.text());
      if (message.type() === "error" && !isOfNetwork) {
        this.complaints.push(message.text());
      }
    });
    page.on("request", (request) => this.hosts.add(new URL(request.url()).host));
  }

  static async come(kind: Kind = {}): Promise<Visitor> {
    const context = await (await browser()).newContext({
      locale: kind.locale ?? "en-GB",
      colorScheme: kind.colorScheme ?? "light",
      viewport: { width: kind.width ?? 1280, height: kind.height ?? 860 },
      reducedMotion: kind.motion ?? "reduce",
      serviceWorkers: kind.worker ?? "block",
    });
    // For each of its tabs.
    context.setDefaultTimeout(PATIENCE_MS);
    const permissions = ["clipboard-read", "clipboard-write"];
    // A page out of a folder has no address, so Chromium takes it for one of the Internet that reaches for this machine.
    if (PAGE !== undefined) permissions.push("local-network-access");
    await context.grantPermissions(permissions);
    if (PAGE !== undefined && kind.worker !== "allow")
      await context.route(isOfThePage, (route) => fromFolder(route, PAGE));
    return new Visitor(context, await context.newPage());
  }

  /** Goes to a path of the page, as if for the first time but with a key. */
  async enter(url: string, key: string, path = "/", size = { width: 1280, height: 860 }): Promise<void> {
    await this.page.setViewportSize(size);
    // Where nothing of before is left: a hash alone would load nothing anew.
    await this.page.goto("about:blank");
    await this.page.goto(`${url}/#token=${key}`);
    await this.page.locator("textarea").first().waitFor();
    if (path === "/") return;
    await this.page.goto("about:blank");
    await this.page.goto(url + path);
  }

  /** By day or by night, where the page goes by the system. */
  async inTheme(theme: "light" | "dark"): Promise<void> {
    await this.page.emulateMedia({ colorScheme: theme });
    await this.page.locator(`html[data-theme=${theme}]`).waitFor();
  }

  /** Another tab of the same browser. */
  async tab(): Promise<Page> {
    return await this.#context.newPage();
  }

  /** Types into the field of the chat, and presses Enter. */
  async type(text: string): Promise<void> {
    const field = this.page.locator("form:has(.composer-row) textarea");
    await field.fill(text);
    await field.press("Enter");
  }

  /** Says something in the chat, and sees that it stands there, and with it the message that answers it. */
  async say(text: string): Promise<void> {
    await this.type(text);
    const said = new RegExp(`^${visible(text).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`);
    await this.page.locator(".user-bubble").last().filter({ hasText: said }).waitFor();
  }

  /** The dialog with models and the ways calls travel. */
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

  /** The dialog in which a model is connected. */
  async openModels(): Promise<void> {
    await (await this.openPicker()).locator("footer button").click();
    await this.page.locator("dialog.models").waitFor();
  }

  /** How calls travel from now on. */
  async chooseMode(mode: Mode): Promise<void> {
    const picker = await this.openPicker();
    // The field itself is for screen readers alone, and its words are those of the language.
    await picker.locator("fieldset.segments label").nth(MODES.indexOf(mode)).click();
    await this.closePicker();
  }

  async isMode(mode: Mode): Promise<boolean> {
    const picker = await this.openPicker();
    const isChosen = await picker.locator("fieldset.segments input").nth(MODES.indexOf(mode)).isChecked();
    await this.closePicker();
    return isChosen;
  }

  /** Remembers from now on what the thread looks like: each change of the cards, each length of the text. */
  async watch(): Promise<void> {
    await this.page.evaluate(() => {
      const seen: Seen = { cards: [], lengths: [] };
      (window as unknown as { seen: Seen }).seen = seen;
      const keep = <T>(list: T[], value: T): void => {
        if (list.at(-1) !== value) list.push(value);
      };
      const look = (): void => {
        const cards = [...document.querySelectorAll(".card")];
        keep(
          seen.cards,
          cards
            .map((card) => `${card.querySelector(".name")?.textContent} ${card.getAttribute("data-status")}`)
            .join(", "),
        );
        const texts = [...document.querySelectorAll("article:last-of-type .part[data-kind=text]")];
        keep(
          seen.lengths,
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
      new MutationObserver(look).observe(document.body, options);
    });
  }

  async seen(): Promise<Seen> {
    return await this.page.evaluate(() => (window as unknown as { seen: Seen }).seen);
  }

  /** Waits until the turn that runs has ended. */
  async settled(): Promise<void> {
    await this.page.locator("article[aria-busy=true]").waitFor({ state: "detached" });
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
      // What is still fading in has not its colors yet; what never ends has them.
      const ends = (animation) => animation.effect?.getComputedTiming().endTime !== Infinity;
      await Promise.allSettled(document.getAnimations().filter(ends).map((animation) => animation.finished));
      // All of its rules, those that it leaves out by default as well; a contrast of 7 to 1 is not what this page promises.
      const values = axe.getRules().map(({ ruleId }) => ruleId).filter((rule) => rule !== "color-contrast-enhanced");
      const { violations } = await axe.run(document, { runOnly: { type: "rule", values } });
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
  }
}

/** Documents for untrusted content come from the program, with the policy that it gives them. */
function isOfThePage({ hostname, pathname }: URL): boolean {
  return hostname === "127.0.0.1" && !/^\/(v1|docs|home|frames|approve)\b/.test(pathname);
}

/** With the headers of the server: its policy holds for these files, too. */
async function fromFolder(route: Route, folder: string): Promise<void> {
  const { pathname } = new URL(route.request().url());
  const isFile = /\.\w+$/.test(pathname);
  if (isFile) return await route.fulfill({ path: join(folder, pathname) });
  // A program without a page says at `/` how one gets it, under a policy of its own; where nothing is, the page's policy holds.
  const response = await route.fetch({ url: new URL("/no-such-view", route.request().url()).href });
  const page = { status: 200, contentType: "text/html", path: join(folder, "index.html") };
  await route.fulfill({ response, ...page });
}
