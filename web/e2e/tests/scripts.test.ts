// Texts in non-Latin scripts: direction, punctuation next to addresses, ranges, and formulas.

import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const RIGHT_TO_LEFT = `## ملاحظات

مرحبا! هذا نص بالعربية مع كلمة English في الوسط، ورقم 42.

1. الخطوة الأولى: شغّل \`npm install\`.
2. \`npm test\` هي الخطوة الثانية.
3. English step.

שלום, זה טקסט בעברית (עם סוגריים).

This paragraph is English and stays left to right.

> اقتباس قصير.

| الاسم | السعر |
|---|---|
| كتاب | 10 |
| book | 10 |

\`\`\`sh
npm install # تثبيت
\`\`\`

الطاقة هي $E = m_1 * c * c_2$.
`;
const MARKS = `请访问https://example.com/a，然后登录。文档（https://example.com/b）和「https://example.com/c」、https://example.com/d；完。[x](https://example.com/路) 在此。

价格在 10~20 元之间，重量 3~5 公斤。~~真的删除~~ and ~~really deleted~~; ~5 MB now and ~10 MB later.

The energy is \\(E = m_1 * c * c_2\\) and in dollars $a_1 * b_1 * c_{2}$; it costs $5, then $10.

\\[
\\sum_{i=1}^{n} a_{i} \\\\ b_{i} * c_{i} * d
\\]
`;

const fixture = ServerFixture.of(() =>
  Server.scripted([
    { when: { contains: "marks", step: 1 }, does: [{ say: MARKS }] },
    { does: [{ say: RIGHT_TO_LEFT }] },
  ]),
);

test("Arabic and Hebrew are right-to-left, English and code left-to-right, and the layout stays", async () => {
  for (const width of [1280, 390]) {
    const user = await fixture.user({ width, height: 1100 });
    const { page } = user;
    const composer = page.locator("textarea").first();
    const directionOf = (selector: string, text: string) =>
      page
        .locator(selector)
        .filter({ hasText: text })
        .last()
        .evaluate((one) => getComputedStyle(one).direction);

    await composer.fill("hello");
    expect(await composer.evaluate((one) => one.matches(":dir(ltr)"))).toBe(true);
    await composer.fill("مرحبا");
    expect(await composer.evaluate((one) => one.matches(":dir(rtl)"))).toBe(true);
    await user.send("مرحبا، كيف الحال؟");
    await user.settled();
    await page.locator(".markdown math").last().waitFor();

    for (const [selector, text, direction] of [
      [".user-bubble", "مرحبا", "rtl"],
      [".markdown h4", "ملاحظات", "rtl"],
      [".markdown p", "هذا نص", "rtl"],
      [".markdown p", "שלום", "rtl"],
      [".markdown p", "This paragraph", "ltr"],
      [".markdown ol", "الخطوة", "rtl"],
      [".markdown li", "الأولى", "rtl"],
      [".markdown li", "الثانية", "rtl"],
      [".markdown li", "English step", "ltr"],
      [".markdown blockquote", "اقتباس", "rtl"],
      [".markdown table", "كتاب", "rtl"],
      [".markdown th", "السعر", "rtl"],
      [".markdown td", "كتاب", "rtl"],
      [".markdown td", "10", "rtl"],
      [".markdown td", "book", "ltr"],
      [".markdown li code", "npm install", "ltr"],
      [".markdown pre", "npm install", "ltr"],
      [".markdown p", "الطاقة", "rtl"],
      [".markdown .maths", "", "ltr"],
      ["html", "", "ltr"],
    ] as const)
      expect(await directionOf(selector, text), `${selector} ${text}`).toBe(direction);

    // The last punctuation mark is at the left end.
    const paragraph = page.locator(".markdown p").filter({ hasText: "هذا نص" });
    const [mark, all] = await paragraph.evaluate((one) => {
      const text = one.firstChild as Text;
      const range = document.createRange();
      range.setStart(text, text.length - 1);
      range.setEnd(text, text.length);
      const of = range.getBoundingClientRect();
      range.selectNodeContents(one);
      return [of.left, range.getBoundingClientRect().left];
    });
    if (width === 1280) expect(Math.abs((mark ?? 0) - (all ?? 0))).toBeLessThan(2);
    await expect
      .poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
      .toBe(true);
    expect(await user.violations()).toEqual([]);
    await user.picture(`scripts-rtl-${width}`);
  }
});

test("addresses end before full-width punctuation, single tildes are text, and formulas are copied as source", async () => {
  const user = await fixture.user({ width: 1280, height: 860 });
  const { page } = user;
  await user.send("marks");
  await user.settled();
  const answer = page.locator(".markdown").last();
  await answer.locator("math").first().waitFor();
  await expect.poll(() => answer.locator("math").count()).toBe(3);

  const links = await answer
    .getByRole("link")
    .evaluateAll((all) => all.map((one) => decodeURI(one.getAttribute("href") ?? "")));
  expect(links).toEqual(["a", "b", "c", "d", "路"].map((end) => `https://example.com/${end}`));
  expect(await answer.locator("del").allInnerTexts()).toEqual(["真的删除", "really deleted"]);
  expect(await answer.locator("em, strong").count()).toBe(0);
  await expect
    .poll(() => answer.innerText())
    .toContain(
      "价格在 10~20 元之间，重量 3~5 公斤。真的删除 and really deleted; ~5 MB now and ~10 MB later.",
    );

  const copied = async (at: number): Promise<string> => {
    await answer.locator("p").nth(at).selectText();
    await page.keyboard.press("Control+c");
    const text = await page.evaluate(() => navigator.clipboard.readText());
    return text.replace(/\r\n/g, "\n").trim();
  };
  const [, , sentence, block] = MARKS.trim().split("\n\n");
  expect(await copied(2)).toBe(sentence);
  expect(await copied(3)).toBe(block);
  await page.evaluate(() => getSelection()?.removeAllRanges());
  await user.picture("scripts-marks");
});
