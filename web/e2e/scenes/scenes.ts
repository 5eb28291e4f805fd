// All views and states of the page, with the steps to reach them: one row per scene. Each is checked by axe and drawn into
// docs/pictures. A new view needs a new row.

import type { Locator, Page } from "playwright-core";
import { en } from "../../app/src/i18n/en.ts";
import type { Words } from "../../app/src/i18n/words.ts";
import { zh } from "../../app/src/i18n/zh.ts";
import type { BrowserUser } from "../browser.ts";
import { ASK, type Language, type Question } from "./stage.ts";

/** The user of a scene. */
export class SceneUser {
  readonly user: BrowserUser;
  readonly page: Page;
  readonly language: Language;
  readonly words: Words;

  constructor(user: BrowserUser, language: Language) {
    this.user = user;
    this.page = user.page;
    this.language = language;
    this.words = language === "en" ? en : zh;
  }

  /** Asks in a new conversation. */
  async ask(question: Question): Promise<void> {
    await this.user.send(ASK[question][this.language]);
  }

  async askAndWait(question: Question): Promise<void> {
    await this.ask(question);
    // Actions of a finished answer.
    await this.button(this.words.regenerate).waitFor();
  }

  button(name: string): Locator {
    return this.page.getByRole("button", { name, exact: true });
  }

  card(tool: string): Locator {
    return this.page.locator(".card").filter({ has: this.page.locator(".name", { hasText: tool }) });
  }

  async open(tool: string, at = 0): Promise<void> {
    await this.card(tool).locator(".card-head").nth(at).click();
  }

  /** Opens the menu of the current conversation. Rows move away from the mouse when the list changes, but not from the keyboard. */
  async openMenu(): Promise<void> {
    const row = this.page.locator(".conversation-row:has([aria-current])");
    await row.getByRole("link").focus();
    await row.getByRole("button").click();
  }

  /** Opens the dialog of models. */
  async openModels(): Promise<void> {
    await this.button(this.words.settings).click();
    await this.button(this.words.connectHow).click();
  }

  /** Scrolls to the beginning of the thread. */
  async fromTop(): Promise<void> {
    await this.page.locator("ol article").first().scrollIntoViewIfNeeded();
  }
}

export interface Scene {
  name: string;
  /** Path of the scene; default the chat. */
  path?: string;
  /** Size of the window. */
  size?: { width: number; height: number };
  arrive(user: SceneUser): Promise<void>;
  /** Selector of the pictured part; default the whole page. */
  shown?: string;
  /** Not pictured: other scenes show the same. */
  isPlain?: true;
}

const PHONE = { width: 360, height: 740 };
/** A window with room for a whole message. */
const TALL = { width: 1280, height: 1_500 };

/** A recorded reply with a call. */
const RECORDED = [
  '{"choices":[{"index":0,"delta":{"role":"assistant","content":"I look at the weather."}}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}]}}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":\\"Paris\\"}"}}]}}]}',
  '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
  "[DONE]",
]
  .map((data) => `data: ${data}\n\n`)
  .join("");

export const SCENES: readonly Scene[] = [
  {
    name: "first-run",
    arrive: async ({ page }) => await page.locator(".first-examples button").first().waitFor(),
  },
  {
    name: "chat",
    size: { width: 1280, height: 960 },
    arrive: async (user) => {
      await user.ask("plan");
      await user.page.getByRole("button", { name: new RegExp(`^${user.words.approve}`) }).waitFor();
      await user.page.locator("textarea").first().blur();
    },
  },
  {
    name: "calls-at-work",
    arrive: async (user) => {
      await user.ask("live");
      await user.page.locator(".card[data-status=preparing]").waitFor();
      await user.page.locator(".card[data-status=running]").waitFor();
      await user.open("demo.calendar");
      await user.open("slow.work");
    },
  },
  {
    name: "question",
    arrive: async (user) => {
      await user.ask("questions");
      await user.page.getByText(user.words.questionsOpen(2)).waitFor();
    },
  },
  {
    name: "question-denied-and-edited",
    isPlain: true,
    arrive: async (user) => {
      await user.ask("questions");
      await user.page.getByText(user.words.questionsOpen(2)).waitFor();
      await user.button(user.words.editArguments).first().click();
      await user.page
        .getByRole("button", { name: new RegExp(`^${user.words.deny}`) })
        .last()
        .click();
      await user.page.getByRole("textbox", { name: user.words.denyReason }).waitFor();
    },
  },
  {
    name: "how-calls-end",
    size: TALL,
    arrive: async (user) => {
      const { page, words } = user;
      await user.ask("states");
      // One is denied, one is stopped separately; the rest ends by itself.
      await page.getByRole("button", { name: new RegExp(`^${words.deny}`) }).click();
      const reason = page.getByRole("textbox", { name: words.denyReason });
      await reason.fill(user.language === "en" ? "Nobody works at night" : "夜里没人上班");
      await reason.press("Enter");
      await page.locator(".card[data-status=running]").filter({ hasText: "slow.work" }).waitFor();
      await user.open("slow.work");
      await user.button(words.cancelCall).click();
      await user.user.settled();
      await user.open("slow.work");
      await user.open("demo.fail");
      await user.open("demo_wether");
      await user.open("demo.calendar");
    },
  },
  {
    name: "group",
    isPlain: true,
    arrive: async (user) => {
      await user.askAndWait("group");
      await user.page.locator(".calls").click();
      await user.open("demo.weather");
    },
  },
  {
    name: "outputs",
    size: { width: 1280, height: 2_560 },
    arrive: async (user) => {
      await user.askAndWait("outputs");
      for (const tool of ["data.table", "data.tree", "data.lines", "data.picture"]) await user.open(tool);
      await user.page.locator(".card-body img").waitFor();
      await user.fromTop();
    },
  },
  {
    name: "output-raw",
    isPlain: true,
    arrive: async (user) => {
      await user.askAndWait("outputs");
      await user.open("data.table");
      await user.page.getByText(user.words.raw, { exact: true }).first().click();
    },
  },
  {
    name: "thinking",
    arrive: async (user) => {
      await user.askAndWait("thinking");
      await user.page.getByRole("button", { name: /^(Thought|思考[了过])/ }).click();
    },
  },
  {
    name: "markdown",
    size: { width: 1280, height: 1_100 },
    arrive: async (user) => {
      await user.askAndWait("markdown");
      await user.page.locator("pre [data-token]").first().waitFor();
      await user.fromTop();
    },
  },
  {
    name: "error",
    arrive: async (user) => {
      await user.ask("error");
      await user.button(user.words.switchToText).waitFor();
    },
  },
  { name: "cut", isPlain: true, arrive: async (user) => await user.askAndWait("cut") },
  {
    name: "said-meanwhile",
    arrive: async (user) => {
      await user.ask("slow");
      await user.page.locator(".part[data-kind=text]").waitFor();
      const field = user.page.locator("textarea").first();
      await field.fill(user.language === "en" ? "And in three sentences, please" : "请用三句话说");
      await user.page.keyboard.press("Alt+Enter");
      await user.page.getByText(user.words.waitsForEnd).waitFor();
    },
  },
  {
    name: "conversations",
    arrive: async (user) => {
      await user.askAndWait("cut");
      await user.page.locator(".conversation-row").first().waitFor();
    },
  },
  {
    name: "conversation-menu",
    isPlain: true,
    arrive: async (user) => {
      const { page } = user;
      await user.askAndWait("cut");
      await user.openMenu();
      await page.locator(".menu-facts").getByText(/\d/).first().waitFor();
    },
  },
  {
    name: "share",
    isPlain: true,
    arrive: async (user) => {
      const { page } = user;
      await user.askAndWait("cut");
      await user.openMenu();
      await page.locator(".menu-item").nth(4).click();
      await page.locator("dialog .primary").click();
      await page.locator("dialog input[readonly]").waitFor();
    },
  },
  {
    name: "phone-conversations",
    size: PHONE,
    isPlain: true,
    arrive: async (user) => {
      await user.askAndWait("cut");
      await user.button(user.words.conversations).click();
      await user.page.locator("dialog .conversation-row").first().waitFor();
    },
  },
  {
    name: "temporary",
    isPlain: true,
    arrive: async ({ page }) => {
      await page.locator(".conversations [aria-pressed]").click();
      await page.locator(".temporary-notice").waitFor();
    },
  },
  {
    name: "picker",
    arrive: async (user) => {
      await user.askAndWait("thinking");
      await (await user.user.openPicker()).locator("[data-row]").first().waitFor();
    },
  },
  {
    name: "phone-picker",
    size: PHONE,
    isPlain: true,
    arrive: async (user) => {
      await (await user.user.openPicker()).locator("[data-row]").first().waitFor();
    },
  },
  {
    name: "commands",
    isPlain: true,
    arrive: async (user) => {
      await user.askAndWait("thinking");
      await user.page.locator("textarea").first().fill("/");
      await user.page.getByRole("listbox").getByRole("option").first().waitFor();
    },
  },
  {
    name: "settings",
    isPlain: true,
    arrive: async (user) => {
      await user.button(user.words.settings).click();
      await user.page.getByLabel(user.words.theme).waitFor();
    },
  },
  {
    name: "settings-page",
    path: "/settings",
    isPlain: true,
    arrive: async ({ page }) => await page.locator(".settings-facts").nth(1).waitFor(),
  },
  {
    name: "people",
    path: "/settings",
    size: { width: 1280, height: 1_700 },
    arrive: async ({ page }) => {
      const first = page.locator("[data-people] > li").first();
      await first.getByRole("button").click();
      await first.locator("form").waitFor();
      await first.locator("li").first().waitFor();
    },
  },
  {
    name: "connect",
    arrive: async (user) => {
      await user.openModels();
      await user.page.getByRole("dialog").getByRole("listitem").first().waitFor();
    },
  },
  {
    name: "connect-key",
    isPlain: true,
    arrive: async (user) => {
      await user.openModels();
      const dialog = user.page.getByRole("dialog");
      await dialog.getByRole("button", { name: "DeepSeek" }).click();
      await dialog.locator("form input").waitFor();
    },
  },
  {
    name: "connect-own",
    isPlain: true,
    arrive: async (user) => {
      await user.openModels();
      const dialog = user.page.getByRole("dialog");
      await dialog.locator("footer button").click();
      await dialog.locator("form input").first().fill("http://gpu-box:8000/v1");
    },
  },
  {
    name: "keys",
    isPlain: true,
    arrive: async (user) => {
      await user.page.locator("h1").first().click();
      await user.page.keyboard.press("?");
      await user.page.locator("dialog[open]").waitFor();
    },
  },
  {
    name: "sign-in",
    isPlain: true,
    arrive: async (user) => {
      await user.page.evaluate(() => localStorage.removeItem("throughline.key"));
      await user.page.reload();
      await user.page.locator("#key").waitFor();
    },
  },
  {
    name: "nothing-here",
    path: "/no-such-view",
    isPlain: true,
    arrive: async (user) => await user.page.getByText(user.words.notFound).waitFor(),
  },
  {
    name: "tester",
    path: "/tester#tool=data.table",
    size: { width: 1280, height: 1_240 },
    arrive: async ({ page, language }) => {
      await page.locator(".tool-row").first().waitFor();
      const call =
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」demo_weather「末」,\ncity:「始」成都「末」\n<<<[END_TOOL_REQUEST]>>>";
      const text = language === "en" ? `I look.\n${call}\nOne moment.` : `我看一下。\n${call}\n稍等。`;
      await page.locator("section textarea").last().fill(text);
      await page.locator("mark").waitFor();
      await page.locator("section button.primary").last().click();
      await page.locator("table.values").waitFor();
    },
  },
  {
    name: "history",
    path: "/history",
    arrive: async ({ page }) => await page.locator("[data-row]").first().waitFor(),
  },
  {
    name: "history-turn",
    path: "/history",
    size: TALL,
    arrive: async ({ page }) => {
      await page.locator("[data-row]:has(.pill[data-look=good]) a").first().click();
      await page.locator(".travel-message .part").first().waitFor();
    },
  },
  {
    name: "history-compare",
    path: "/history",
    size: TALL,
    arrive: async ({ page }) => {
      await page.locator("[data-row] input").nth(0).check();
      await page.locator("[data-row] input").nth(1).check();
      await page.locator(".picked-bar a").click();
      await page.locator(".travel-message .part").first().waitFor();
    },
  },
  {
    name: "history-calls",
    path: "/history/calls",
    arrive: async ({ page }) => await page.locator("[data-row]").first().waitFor(),
  },
  {
    name: "history-detail",
    path: "/history/calls?tool=slow.work",
    size: TALL,
    arrive: async ({ page }) => {
      await page.locator("[data-row] a").first().click();
      await page.locator("tfoot").first().waitFor();
    },
  },
  {
    name: "agents",
    path: "/agents",
    size: { width: 1280, height: 900 },
    arrive: async ({ page }) => await page.locator(".agent-preview pre").first().waitFor(),
  },
  {
    name: "metrics",
    arrive: async (user) => {
      await user.askAndWait("outputs");
      await user.page.locator('a[href="/stats"]').click();
      await user.page.locator(".metrics table tbody tr").first().waitFor();
    },
  },
  {
    name: "recorded",
    path: "/tester?recorded",
    arrive: async ({ page }) => {
      await page.locator("input[type=file]").setInputFiles({
        name: "recorded.sse",
        mimeType: "text/event-stream",
        buffer: Buffer.from(RECORDED),
      });
      await page.locator(".card").first().waitFor();
    },
  },
  {
    name: "phone",
    size: PHONE,
    arrive: async (user) => {
      await user.ask("questions");
      await user.page.getByRole("group").first().waitFor();
    },
  },
  {
    name: "phone-first-run",
    size: PHONE,
    arrive: async ({ page }) => await page.locator(".first-examples button").first().waitFor(),
  },
  {
    name: "phone-history",
    size: PHONE,
    path: "/history",
    arrive: async ({ page }) => await page.locator("[data-row]").first().waitFor(),
  },
  {
    name: "phone-agents",
    size: PHONE,
    path: "/agents",
    isPlain: true,
    arrive: async ({ page }) => await page.locator(".agent-row").first().waitFor(),
  },
  {
    name: "phone-metrics",
    size: PHONE,
    path: "/stats",
    isPlain: true,
    arrive: async ({ page }) => await page.locator(".tile").first().waitFor(),
  },
  {
    name: "phone-settings-page",
    size: PHONE,
    path: "/settings",
    isPlain: true,
    arrive: async ({ page }) => await page.locator(".settings-facts").nth(1).waitFor(),
  },
  {
    name: "phone-tester",
    size: PHONE,
    path: "/tester",
    isPlain: true,
    arrive: async ({ page }) => await page.locator(".tool-row").first().waitFor(),
  },
];
