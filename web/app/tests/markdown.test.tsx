import { cleanup, render, within } from "@testing-library/react";
import { csvOf, read } from "@throughline/markdown";
import fc from "fast-check";
import type { Tokens } from "marked";
import { expect, test } from "vitest";
import { Markdown } from "../src/chat/blocks/markdown/markdown.tsx";
import { OWN_EXAMPLES } from "./examples.ts";

function drawn(text: string): HTMLElement {
  return render(<Markdown text={text} isOpen={false} />).container;
}

const parsed = (html: string) => new DOMParser().parseFromString(html, "text/html");

test("headings, lists, tables, code and emphasis are elements", () => {
  const page = drawn(
    "# Title\n\n**bold** *slanted* `code`\n\n- one\n- [x] done\n\n3. three\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```js\nlet x = 1;\n```\n\n> said",
  );
  for (const [selector, text] of [
    ["h3", "Title"],
    ["strong", "bold"],
    ["em", "slanted"],
    ["p code", "code"],
    ["ol[start='3'] li", "three"],
    ["td:last-child", "2"],
    ["pre code", "let x = 1;"],
    ["blockquote", "said"],
  ] as const) {
    expect(page.querySelector(selector)?.textContent, selector).toBe(text);
  }
  expect(page.querySelector("li.task input")).toBeChecked();
});

test("text in pieces ends as the whole", () => {
  const text = "# T\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | **2** |\n\n```\ncode\n```\n\nend";
  const { container, rerender } = render(<Markdown text="" isOpen />);
  for (let at = 1; at <= text.length; at += 1) rerender(<Markdown text={text.slice(0, at)} isOpen />);
  rerender(<Markdown text={text} isOpen={false} />);
  expect(container.innerHTML).toBe(drawn(text).innerHTML);
});

test("any text cut anywhere ends as the whole", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...OWN_EXAMPLES.map(([text]) => text)), { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(400), { maxLength: 12 }),
      (parts, cuts) => {
        const text = parts.join("\n\n");
        const { container, rerender, unmount } = render(<Markdown text="" isOpen />);
        for (const cut of cuts.sort((a, b) => a - b)) rerender(<Markdown text={text.slice(0, cut)} isOpen />);
        rerender(<Markdown text={text} isOpen={false} />);
        const whole = drawn(text);
        // Ids of footnotes begin with those of their message.
        const page = (shown: HTMLElement) => shown.innerHTML.replace(/_r_\w+_/g, "");
        const same = parsed(page(container)).isEqualNode(parsed(page(whole)));
        expect(same, `${page(container)}\n${page(whole)}`).toBe(true);
        unmount();
        cleanup();
      },
    ),
    { numRuns: 60 },
  );
}, 60_000);

test("late link definition applies to text that was parsed before", () => {
  const text = `See [the source][1] first.\n\n${"words\n\n".repeat(40)}[1]: https://example.com/late\n`;
  const { container, rerender } = render(<Markdown text="" isOpen />);
  for (let at = 1; at <= text.length; at += 1) rerender(<Markdown text={text.slice(0, at)} isOpen />);
  expect(container.querySelector("a")?.getAttribute("href")).toBe("https://example.com/late");
});

test("finished passage keeps its elements", () => {
  const paragraphs = Array.from({ length: 40 }, (_, at) => `paragraph ${at}`);
  const { container, rerender } = render(<Markdown text={paragraphs.slice(0, 20).join("\n\n")} isOpen />);
  const [first] = container.querySelectorAll("p");
  rerender(<Markdown text={paragraphs.join("\n\n")} isOpen />);
  expect(container.querySelectorAll("p")[0]).toBe(first);
  expect(container.querySelectorAll(".passage").length).toBe(5);
});

test("task has one checkbox, labelled by its own text", () => {
  const page = drawn("- [ ] open *task*\n  - nested\n- [x] done\n\n1. [x] loose\n\n   more\n");
  const boxes = within(page).getAllByRole("checkbox");
  expect(boxes.map((box) => box.closest("label")?.textContent)).toEqual(["open task", "done", "loose"]);
  expect(boxes.map((box) => (box as HTMLInputElement).checked)).toEqual([false, true, true]);
  expect(page.textContent).not.toContain("[");
});

test("subscript, footnotes, alerts and a few tags are elements, single tildes are text", () => {
  const page = drawn(
    "H~2~O x^2^ ~5~ <kbd>Ctrl</kbd>[^a]\n\n> [!WARNING]\n> Mind.\n\n<details>\n<summary>More</summary>\n\n**in**\n\n</details>\n\n| a |\n|---|\n| x<br>y |\n\n[^a]: Note.",
  );
  for (const [selector, text] of [
    ["sub", "2"],
    ["sup:not([class])", "2"],
    ["kbd", "Ctrl"],
    [".footnote-ref", "1"],
    [".footnote", "1Note."],
    ["blockquote[data-alert=warning] .alert-title", "Warning"],
    ["details summary", "More"],
    ["details strong", "in"],
  ] as const) {
    expect(page.querySelector(selector)?.textContent, selector).toBe(text);
  }
  expect(page.querySelector("del")).toBeNull();
  expect(page.querySelector("td br")).not.toBeNull();
  const [jump] = page.querySelectorAll<HTMLAnchorElement>(".footnote-ref a");
  expect(jump?.getAttribute("href")?.slice(1)).toBe(page.querySelector(".footnote")?.id);
});

test("block has the direction of its own text", () => {
  const page = drawn(
    "# שלום\n\nעולם\n\n- פריט\n- item\n- `npm i` https://example.com פריט\n\n> ציטוט\n\n| א | 1 |\n|---|---|\n| ב | 2 |",
  );
  for (const selector of ["h3", "p", "td", "th"])
    expect(page.querySelector(selector)).toHaveAttribute("dir", "auto");
  for (const selector of ["ul", "blockquote", "table"])
    expect(page.querySelector(selector)).toHaveAttribute("dir", "rtl");
  // Cells with numbers only have no direction of their own.
  expect(page.querySelector("td:last-child")).not.toHaveAttribute("dir");
  const items = [...page.querySelectorAll("li")].map((item) => item.getAttribute("dir"));
  expect(items).toEqual(["rtl", "ltr", "rtl"]);
});

test("code and formulas are left-to-right in any text", () => {
  const page = drawn("עולם `npm install` $a_1$\n\n- פריט `npm i`\n\n  ```js\n  let x;\n  ```");
  for (const selector of ["p code", "li code", ".maths", ".code"])
    expect(page.querySelector(selector)).toHaveAttribute("dir", "ltr");
});

test("formula that cannot be drawn is shown as its exact source", () => {
  const formulas = [
    "\\(E = m_1 * c * c_2\\)",
    "$a_1 * b_1 * c_{2}$",
    "\\[\n\\sum_{i=1}^{n} a_{i} \\\\ b_{i} * c_{i}\n\\]",
  ];
  const page = drawn(`${formulas.slice(0, 2).join(" and ")}\n\n${formulas[2]}\n\nIt costs $5, then $10.`);
  expect([...page.querySelectorAll(".maths")].map((one) => one.textContent)).toEqual(formulas);
  expect(page.querySelector("em, strong")).toBeNull();
  expect(page.textContent).toContain("It costs $5, then $10.");
});

test("address ends before full-width punctuation, and an explicit link stays unchanged", () => {
  const page = drawn(
    "请访问https://example.com/a，然后登录。文档（https://example.com/b）和「https://example.com/c」、见 www.example.com/d；完。\n\n[x](https://example.com/路，口)",
  );
  expect([...page.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([
    "https://example.com/a",
    "https://example.com/b",
    "https://example.com/c",
    "http://www.example.com/d",
    new URL("https://example.com/路，口").href,
  ]);
  expect(page.querySelector("p")?.textContent).toContain("a，然后登录。文档（https");
});

test("nested details are limited, and unclosed tags are text", () => {
  const page = drawn(`${"<details>\n\n".repeat(2_000)}x`);
  expect(page.textContent).toContain("x");
  expect(page.querySelectorAll("details").length).toBeLessThan(10);
  expect(drawn(`a ${"<kbd>".repeat(5_000)}`).textContent).toContain("<kbd><kbd>");
});

test("table is copied as CSV without formulas", () => {
  const [table] = read('| a, b | **c** |\n|---|---|\n| =1+1 | x<br>"y" |\n| -5 | +49 |');
  expect(csvOf(table as Tokens.Table)).toBe('"a, b",c\r\n\'=1+1,"x\n""y"""\r\n-5,+49');
});
