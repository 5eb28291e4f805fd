// Text of models, tools and users never becomes markup.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { render } from "@testing-library/react";
import { type CallBlock, Throughline, TurnStore } from "@throughline/client";
import { visible } from "@throughline/visible";
import type { ReactElement } from "react";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Avatar } from "../src/avatar/model.ts";
import { Markdown } from "../src/chat/blocks/markdown/markdown.tsx";
import { Card } from "../src/chat/card/card.tsx";
import { ChatProvider, EntryProvider } from "../src/chat/context.tsx";
import { ConversationStore } from "../src/chat/model/conversation.ts";
import { OpenApprovals } from "../src/chat/model/open-approvals.ts";
import { language } from "../src/preferences.ts";
import { ClientProvider } from "../src/session/context.tsx";

const OWN: readonly string[] = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<a href=javascript:alert(1)>x</a>",
  "[x](javascript:alert(1)) [y](JaVaScRiPt&colon;alert(1)) [z](\u0001javascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>) [y](vbscript:x) [z](//evil.example)",
  "[x][r]\n\n[r]: javascript:alert(1)",
  "<javascript:alert(1)> <data:text/html;base64,PHN2Zz4=>",
  "![x](https://evil.example/track.png) ![y](data:image/svg+xml,<svg onload=alert(1)>) ![z](x.png)",
  "| <svg onload=alert(1)> |\n|---|\n| <math><mi xlink:href=javascript:alert(1)> |",
  '```html"><img src=x onerror=alert(1)>\n<iframe src=//evil.example></iframe>\n```',
  "<style>@import url(//evil.example)</style><link rel=stylesheet href=//evil.example><base href=//evil.example>",
  "<kbd onclick=alert(1)>k</kbd> <sub style=x>s</sub> <details open ontoggle=alert(1)>\n<summary onclick=alert(1)>s</summary>\n</details>",
  '<details>\n<summary><img src=x onerror=alert(1)></summary>\n\n<a href="javascript:alert(1)">x</a>\n\n</details>',
  'a[^"onclick=alert(1)] [^<svg/onload=alert(1)>]\n\n[^"onclick=alert(1)]: <script>alert(1)</script>\n[^<svg/onload=alert(1)>]: x',
  "[x](java&#115;cript&colon;alert(1)) [y](&#106;avascript:alert(1)) &lt;script&gt;alert(1)&lt;/script&gt;",
  '{"a":"<img src=x onerror=alert(1)>","<b>":[{"__proto__":"<i>"}]}',
];

const ELEMENTS = new Set(
  "div p h3 h4 h5 h6 strong em del code pre blockquote ul ol li input label kbd mark sub sup b i s u ins small details summary table thead tbody tr th td hr br a span button section bdi svg path circle rect line polyline ellipse polygon".split(
    " ",
  ),
);
const ATTRIBUTES = new Set(
  "class style id dir open href target rel title tabindex role type disabled checked hidden start name d x y x1 x2 y1 y2 cx cy r rx ry width height points viewBox fill stroke stroke-width stroke-linecap stroke-linejoin xmlns".split(
    " ",
  ),
);
/** Attributes of the page itself, independent of the text. */
const OF_THE_PAGE = /^(aria-|data-(token|look|status|kind|open|alert)$)/;

function checkInert(page: HTMLElement): void {
  for (const element of page.querySelectorAll("*")) {
    expect(ELEMENTS, element.outerHTML).toContain(element.localName);
    for (const { name } of element.attributes) {
      expect(ATTRIBUTES.has(name) || OF_THE_PAGE.test(name), `${name} of ${element.outerHTML}`).toBe(true);
    }
    expect(element.getAttribute("style") ?? "").toMatch(/^(text-align: (left|right|center);)?$/);
    const href = element.getAttribute("href");
    // Links of the page itself: from a call to the tester, and between a text and its footnotes.
    if (href !== null) expect(href).toMatch(/^(https?:\/\/|mailto:|\/tester#tool=|#_r_\w+_(ref|note)-\d+$)/);
  }
}

const client = new Throughline({ baseUrl: "http://server", fetch: async () => Response.json({}) });
const conversation = new ConversationStore(client);
const openApprovals = new OpenApprovals();

function page(shown: ReactElement): HTMLElement {
  return render(
    <ClientProvider value={client}>
      <ChatProvider
        value={{ conversation, openApprovals, avatar: new Avatar(client), hold: () => undefined }}
      >
        <EntryProvider value={{ key: "1", turnId: "turn_1", store: new TurnStore(), draft: undefined }}>
          {shown}
        </EntryProvider>
      </ChatProvider>
    </ClientProvider>,
  ).container;
}

/** A card with the text in every field, folded or open. */
function card(text: string, call: Partial<CallBlock>): HTMLElement {
  const whole: CallBlock = { kind: "tool_call", tool_id: "c1", tool_name: text, title: text, ...call };
  const shown = page(<Card call={whole} />);
  shown.querySelector<HTMLElement>(".card-head[aria-expanded=false]")?.click();
  return shown;
}

function checkEverywhere(text: string): void {
  checkInert(page(<Markdown text={text} isOpen={false} />));
  checkInert(page(<Markdown text={text} isOpen />));
  const shown = [
    card(text, { status: "success", arguments: { [text]: text }, input_summary: text, output: text }),
    card(text, { status: "success", arguments: {}, output_value: [{ [text]: text }], output: "" }),
    card(text, { status: "running", output: text, progress: { message: text }, started_at: 0 }),
    card(text, { status: "error", error: { code: "failed", message: text, closest: [text] }, rule: text }),
    card(text, { status: "preparing", input_text: JSON.stringify({ [text]: text }).slice(0, -1) }),
    card(text, { status: "preparing", input_text: text }),
  ];
  for (const one of shown) checkInert(one);
  // The text was visible: the check looked at something.
  expect(shown[0]?.querySelector(".name")?.textContent).toBe(visible(text));
}

beforeEach(() => {
  language.set("en");
  vi.stubGlobal("requestIdleCallback", () => 0);
  vi.stubGlobal("cancelIdleCallback", () => undefined);
});

describe("markup is text everywhere", () => {
  test.each(OWN)("%s", checkEverywhere);
});

const vectors = process.env.THROUGHLINE_VECTORS;
const file = join(vectors ?? "", "suites/html-xss/payloads.jsonl");
if (vectors === undefined || !existsSync(file)) {
  // biome-ignore lint/suspicious/noConsole: whoever runs the tests must know what was left out
  console.log("skipped: THROUGHLINE_VECTORS is not set");
} else {
  const payloads = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line): { payload: string } => JSON.parse(line));
  test("every vector of the suite is text everywhere", () => {
    expect(payloads.length).toBeGreaterThan(100);
    for (const { payload } of payloads) checkEverywhere(payload);
  }, 300_000);
}

test("picture of another host is linked and not loaded", () => {
  const shown = page(<Markdown text="![a cat](https://pictures.example/cat.png)" isOpen={false} />);
  expect(shown.querySelector("img")).toBeNull();
  expect(shown.querySelector("a.picture")).toHaveTextContent("Load image from pictures.example");
});
