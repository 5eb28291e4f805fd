// Markdown of models, on a screen and on a phone.

import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const COLUMNS = ["Name", "Value", "Another", "Description", "Responsibility", "Notes"];
const ROWS = Array.from(
  { length: 60 },
  (_, at) => `| ${COLUMNS.map((name) => `${name} ${at}`).join(" | ")} |`,
);

const TEXT = `# Heading one

Water is H~2~O, and x^2^ is a square[^1]. Press <kbd>Ctrl</kbd>+<kbd>C</kbd>; it takes ~5 s, ~10 s at most. See https://example.com/docs.

## Heading two

- [x] done task
- [ ] open task
  - nested
    1. numbered

       its paragraph
- [ ] last

> [!WARNING]
> Mind the **gap**.

### Heading three

> שלום עולם, זה ציטוט.

שלום **עולם**! This line begins on the right.

- פריט ראשון
- פריט שני

#### Heading four

<details>
<summary>More about it</summary>

Folded **Markdown**.

</details>

| a | b |
|---|--:|
| one<br>two | 3 |

\`\`\`diff
--- a/file
+++ b/file
@@ -1,2 +1,2 @@
 same
-before
+after
\`\`\`

[^1]: The note, with \`code\`.
`;
const FORMULAS = `Energy is $E = mc^2$, as \\(a^2 + b^2 = c^2\\) shows; it costs $5 and $10. Chemistry: $\\ce{2H2 + O2 -> 2H2O}$.

$$
\\int_{-\\infty}^{\\infty} e^{-x^2}\\,dx = \\sqrt{\\pi} \\qquad \\sum_{n=1}^{\\infty} \\frac{1}{n^2} = \\frac{\\pi^2}{6}
$$

\\[
f(x) = \\begin{cases} 1 & x > 0 \\\\ 0 & \\text{otherwise} \\end{cases}
\\]

\\[ \\begin{aligned} a &= b + c \\\\ &= \\left( \\frac{d}{1 + \\frac{1}{x}} \\right)^2 \\end{aligned} \\]

\`\`\`math
\\mathbf{A} = \\begin{pmatrix} a_{11} & \\cdots & a_{1n} \\\\ \\vdots & \\ddots & \\vdots \\\\ a_{m1} & \\cdots & a_{mn} \\end{pmatrix}, \\quad \\mathcal{L}\\{f\\} \\in \\mathbb{R}
\`\`\`

| symbol | meaning |
|---|---|
| $\\hbar$ | $\\boxed{h / 2\\pi}$ |

This one is wrong: $\\nonsense{x}$.
`;
const WIDE = `| ${COLUMNS.join(" | ")} |\n|${"---|".repeat(COLUMNS.length)}\n${ROWS.join("\n")}\n`;

const fixture = ServerFixture.of(() =>
  Server.scripted([
    { when: { contains: "wide", step: 1 }, does: [{ say: WIDE }] },
    { when: { contains: "formulas", step: 1 }, does: [{ say: FORMULAS }] },
    { does: [{ say: TEXT }] },
  ]),
);

test("Markdown of models is shown as intended in both themes, also on a phone", async () => {
  for (const width of [1280, 390]) {
    const user = await fixture.user({ width, height: width === 390 ? 1800 : 1400 });
    const { page } = user;
    await user.send("everything");
    await user.settled();
    const answer = page.locator(".markdown").last();
    await answer.getByRole("link", { name: "Footnote 1", exact: true }).waitFor();

    const boxes = answer.getByRole("checkbox");
    await expect.poll(() => boxes.count()).toBe(3);
    for (const name of ["done task", "open task", "last"])
      await answer.getByRole("checkbox", { name, exact: true }).waitFor();
    expect(await answer.innerText()).not.toMatch(/\[[ x]\]|~2~|\[!|<kbd>|<br>/);
    expect(await answer.locator("del").count()).toBe(0);

    const directions = await answer
      .locator("blockquote:not(.alert), blockquote:not(.alert) p, li:last-child, p")
      .evaluateAll((all) =>
        all
          .filter((one) => /^\s*[\u0590-\u05ff]/.test(one.textContent ?? ""))
          .map((one) => getComputedStyle(one).direction),
      );
    expect(directions.length).toBeGreaterThan(3);
    expect(new Set(directions)).toEqual(new Set(["rtl"]));

    const sizes = await answer
      .locator("h3, h4, h5, h6")
      .evaluateAll((all) => all.map((one) => getComputedStyle(one).fontSize));
    expect(sizes).toEqual(["20px", "17px", "15px", "14px"]);

    await answer.getByRole("link", { name: "Footnote 1", exact: true }).click();
    await expect.poll(() => page.evaluate(() => document.activeElement?.className)).toBe("footnote");
    await answer.locator("summary").click();
    await expect.poll(() => answer.locator("details strong").innerText()).toBe("Markdown");
    await answer.locator("[data-token=added]").first().waitFor();

    for (const theme of ["light", "dark"] as const) {
      await user.inTheme(theme);
      expect(await user.violations()).toEqual([]);
      await page.mouse.move(0, 0);
      await user.picture(`markdown-${width}-${theme}`);
    }
  }
});

test("wide table scrolls horizontally under a sticky head, without broken words", async () => {
  for (const width of [1280, 390]) {
    const user = await fixture.user({ width, height: 860 });
    const { page } = user;
    await user.send("wide");
    await user.settled();
    const frame = page.locator(".markdown .scrolls").last();
    await frame.getByText("Notes 59").waitFor();

    const broken = await frame.locator("th, td").evaluateAll(
      (cells) =>
        cells.filter((cell) => {
          const text = cell.firstChild;
          if (!(text instanceof Text)) return false;
          return [...text.data.matchAll(/\S+/g)].some((word) => {
            const range = document.createRange();
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            return range.getClientRects().length > 1;
          });
        }).length,
    );
    expect(broken).toBe(0);
    await expect
      .poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
      .toBe(true);
    if (width === 390)
      await expect.poll(() => frame.evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(true);

    await frame.evaluate((one) => one.scrollTo({ top: 500 }));
    const apart = () =>
      frame.evaluate((one) => {
        const head = one.querySelector("th")?.getBoundingClientRect().top ?? 0;
        return Math.abs(head - one.getBoundingClientRect().top);
      });
    await expect.poll(apart).toBeLessThan(2);
    await frame.scrollIntoViewIfNeeded();
    await user.picture(`table-${width}`);
    await frame.hover();
    await page.getByRole("button", { name: "Copy as CSV" }).click();
    await expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toContain("Name,Value,Another");
  }
});

test("formulas are MathML with its font, prices are text, and copies are the source", async () => {
  for (const width of [1280, 390]) {
    const user = await fixture.user({ width, height: 1100 });
    const { page } = user;
    const scripts: string[] = [];
    page.on("request", (request) => scripts.push(request.url()));
    await user.send("formulas");
    await user.settled();
    const answer = page.locator(".markdown").last();
    await answer.locator("math").first().waitFor();
    await expect.poll(() => answer.locator("math").count()).toBe(9);
    await expect.poll(() => answer.locator("math[display=block]").count()).toBe(4);
    await expect.poll(() => answer.locator("p").first().innerText()).toContain("$5 and $10");
    await expect.poll(() => answer.locator(".maths-wrong").getAttribute("title")).toContain("nonsense");
    await page.evaluate(() => document.fonts.ready.then(() => undefined));
    await expect
      .poll(() => page.evaluate(() => document.fonts.check('16px "Throughline Math"', "∫")))
      .toBe(true);
    await expect.poll(() => scripts.some((url) => /stix-two-math/.test(url))).toBe(true);
    expect(await answer.locator("[style]").count()).toBe(0);
    await expect
      .poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
      .toBe(true);

    await answer.locator("p").first().selectText();
    await page.keyboard.press("Control+c");
    await expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toContain("Energy is $E = mc^2$, as \\(a^2 + b^2 = c^2\\) shows; it costs $5 and $10.");
    await page.evaluate(() => getSelection()?.removeAllRanges());

    for (const theme of ["light", "dark"] as const) {
      await user.inTheme(theme);
      expect(await user.violations()).toEqual([]);
      await user.picture(`maths-${width}-${theme}`);
    }
  }
});
