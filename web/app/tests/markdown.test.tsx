import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { Markdown } from "../src/chat/blocks/markdown.tsx";

function drawn(text: string): HTMLElement {
  return render(<Markdown text={text} isOpen={false} />).container;
}

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

test("a text that grows piece by piece ends as the whole", () => {
  const text = "# T\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | **2** |\n\n```\ncode\n```\n\nend";
  const { container, rerender } = render(<Markdown text="" isOpen />);
  for (let at = 1; at <= text.length; at += 1) rerender(<Markdown text={text.slice(0, at)} isOpen />);
  rerender(<Markdown text={text} isOpen={false} />);
  expect(container.innerHTML).toBe(drawn(text).innerHTML);
});

test("a link whose address comes last leads there in the text that was read long before", () => {
  const text = `See [the source][1] first.\n\n${"words\n\n".repeat(40)}[1]: https://example.com/late\n`;
  const { container, rerender } = render(<Markdown text="" isOpen />);
  for (let at = 1; at <= text.length; at += 1) rerender(<Markdown text={text.slice(0, at)} isOpen />);
  expect(container.querySelector("a")?.getAttribute("href")).toBe("https://example.com/late");
});

test("a passage that is left behind keeps its elements", () => {
  const paragraphs = Array.from({ length: 40 }, (_, at) => `paragraph ${at}`);
  const { container, rerender } = render(<Markdown text={paragraphs.slice(0, 20).join("\n\n")} isOpen />);
  const [first] = container.querySelectorAll("p");
  rerender(<Markdown text={paragraphs.join("\n\n")} isOpen />);
  expect(container.querySelectorAll("p")[0]).toBe(first);
  expect(container.querySelectorAll(".passage").length).toBe(5);
});
