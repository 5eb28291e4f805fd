// Formulas as MathML, built from allowlists.

import { render, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";
import { Markdown } from "../src/chat/blocks/markdown/markdown.tsx";

async function drawn(text: string): Promise<HTMLElement> {
  await import("../src/chat/blocks/maths/mathml.ts");
  const { container } = render(<Markdown text={text} isOpen={false} />);
  await waitFor(() => expect(container.querySelector(".maths-source")).toBeNull());
  return container;
}

test.each([
  ["$E=mc^2$", "math mi", "E"],
  ["$$\\frac{a}{b}$$", "math[display=block] mfrac", "ab"],
  ["\\(\\sqrt{x}\\)", "msqrt mi", "x"],
  ["\\[\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}\\]", "mtr:last-child mtd:last-child", "4"],
  ["```math\nx_1\n```", "math[display=block] msub", "x1"],
  ["| a |\n|---|\n| $\\pi$ |", "td math", "π"],
  ["$\\ce{H2O}$", "msub mn", "2"],
])("%j is a formula", async (text, selector, content) => {
  const page = await drawn(text);
  expect(page.querySelector(selector)?.textContent).toBe(content);
  expect(page.querySelector("math")?.namespaceURI).toBe("http://www.w3.org/1998/Math/MathML");
});

test("invalid formula shows its source, with the error in its title", async () => {
  const page = await drawn("so $\\unknown{x}$ it is");
  const invalid = page.querySelector(".maths-wrong");
  expect(invalid?.textContent).toBe("$\\unknown{x}$");
  expect(invalid?.getAttribute("title")).toContain("\\unknown");
});

const ATTACKS = [
  "\\href{javascript:alert(1)}{x}",
  "\\url{javascript:alert(1)}",
  "\\htmlData{onclick=alert(1)}{x}",
  "\\htmlId{a}{x}\\htmlClass{b}{x}\\htmlStyle{color:red}{x}",
  "\\style{background:url(//evil.example)}{x}",
  "\\class{evil}{x}\\id{evil}{x}\\data{a=b}{x}",
  "\\includegraphics{https://evil.example/x.png}",
  "\\text{<img src=x onerror=alert(1)>}",
  "\\text{</math><script>alert(1)</script>}",
  "\\unicode{x3c}script\\unicode{x3e}",
  "\\color{red;background:url(//evil.example)}x",
  '\\textcolor{"onload=alert(1)}{x}',
  "\\rule{99999em}{99999em}\\kern99999em",
  "\\def\\a{\\a\\a}\\a",
  `${"\\sqrt{".repeat(400)}x${"}".repeat(400)}`,
  "{".repeat(1_900) + "}".repeat(1_900),
  "\\begin{array}{c|c}\\hline a\\end{array}\\cancel{x}\\boxed{y}\\color{#f00}z",
];
const ELEMENTS = /^(math|m[a-z]+|none|div|p|span|code)$/;
const ATTRIBUTES =
  /^(class|dir|title|data-tex|accent|accentunder|column(align|lines|spacing|span)|depth|display|displaystyle|fence|form|height|largeop|linethickness|lspace|math(background|color|size|variant)|(max|min)size|movablelimits|notation|row(spacing|span)|rspace|scriptlevel|separator|stretchy|symmetric|voffset|width)$/;

test.each(ATTACKS)("%s runs, loads and styles nothing", async (tex) => {
  const page = await drawn(`$$${tex}$$`);
  expect(page.querySelector("math, .maths-wrong")).not.toBeNull();
  for (const element of page.querySelectorAll("*")) {
    expect(element.localName).toMatch(ELEMENTS);
    for (const { name, value } of element.attributes) {
      expect(name, element.outerHTML.slice(0, 200)).toMatch(ATTRIBUTES);
      if (!["title", "data-tex"].includes(name)) expect(value).not.toMatch(/:|\/\/|\d{4}/);
    }
  }
});

test("finished formula stays while the text grows, and an open one is its source", async () => {
  await drawn("$x$");
  const text = "so $a^2$ and\n\n$$\n\\frac{a}{b}\n$$\n\nend";
  const { container, rerender } = render(<Markdown text="" isOpen />);
  let first: Element | null = null;
  for (let at = 1; at <= text.length; at += 1) {
    rerender(<Markdown text={text.slice(0, at)} isOpen />);
    const formula = container.querySelector("msup");
    first ??= formula;
    if (at >= "so $a^2$".length) expect(formula).toBe(first);
    if (at === text.indexOf("\n$$\n\nend"))
      expect(container.querySelector(".maths-source")?.textContent).toBe("$$\n\\frac{a}{b}");
  }
  expect(container.querySelector("mfrac")).not.toBeNull();
});

test("copied formula is its source", async () => {
  const page = await drawn("so $a^2$ it is");
  const range = document.createRange();
  range.selectNodeContents(page);
  getSelection()?.removeAllRanges();
  getSelection()?.addRange(range);
  let copied = "";
  const event = Object.assign(new Event("copy", { bubbles: true, cancelable: true }), {
    clipboardData: { setData: (_: string, text: string) => (copied = text) },
  });
  page.dispatchEvent(event);
  expect(event.defaultPrevented).toBe(true);
  expect(copied).toContain("$a^2$");
  expect(page.querySelector("[data-tex]")).toBeVisible();
});
