import { expect, test } from "vitest";
import { isFenceClosed, read, safeHref } from "../src/index.ts";

/** Emphasis as `[…]`, strong as `{…}`, deleted as `<…>`. */
function marked(text: string): string {
  const drawn = (tokens: readonly ReturnType<typeof read>[number][]): string =>
    tokens
      .map((token) => {
        const inner = "tokens" in token && token.tokens ? drawn(token.tokens) : token.raw;
        if (token.type === "strong") return `{${inner}}`;
        if (token.type === "em") return `[${inner}]`;
        return token.type === "del" ? `<${inner}>` : inner;
      })
      .join("");
  return drawn(read(text));
}

test.each([
  ["**注意：**后", "{注意：}后"],
  ["前**注意：**后", "前{注意：}后"],
  ["**50%**的人", "{50%}的人"],
  ["约**50%**的人", "约{50%}的人"],
  ["他说**“你好”**。", "他说{“你好”}。"],
  ["调用**`run()`**函数", "调用{`run()`}函数"],
  ["*（注）*后", "[（注）]后"],
  ["**《书名》**很好，**「かぎ」**です。", "{《书名》}很好，{「かぎ」}です。"],
  ["**강조(强)**는", "{강조(强)}는"],
  ["中文**强调**中文*斜体*中文", "中文{强调}中文[斜体]中文"],
  ["~~删除：~~好", "<删除：>好"],
  ["价格**(约100元)**左右", "价格{(约100元)}左右"],
  ["第一**重要！**第二**更重要？**第三", "第一{重要！}第二{更重要？}第三"],
  // Other texts are unchanged.
  ["a**b**c and *d* and __e__", "a{b}c and [d] and {e}"],
  ["**a:**b", "**a:**b"],
  ["5 * 3 * 2 and snake_case_name", "5 * 3 * 2 and snake_case_name"],
  ["**bold *both* bold**", "{bold [both] bold}"],
  ["** 空格 ** 不是", "** 空格 ** 不是"],
  ["2**3**4 ~~gone~~.", "2{3}4 <gone>."],
])("%s becomes %s", (text, expected) => expect(marked(text)).toBe(expected));

/** Addresses of the links of a text. */
function addresses(text: string): string[] {
  const found: string[] = [];
  const visit = (tokens: readonly ReturnType<typeof read>[number][]): void => {
    for (const token of tokens) {
      if (token.type === "link") found.push(token.href);
      else if ("tokens" in token && token.tokens) visit(token.tokens);
    }
  };
  visit(read(text));
  return found;
}

// All full-width punctuation ends an address; letters do not.
test.each([..."，。、；：？！（）「」『』《》〈〉【】〔〕［］｛｝“”‘’…—～～｡､\u3000"])(
  "bare address ends before %s",
  (mark) => {
    const expected = ["https://example.com/a?b=c", "http://www.example.com/d"];
    expect(addresses(`见https://example.com/a?b=c${mark}后 www.example.com/d${mark}后`)).toEqual(expected);
    expect(addresses(`见https://example.com/a?b=c.${mark}后 www.example.com/d!${mark}`)).toEqual(expected);
  },
);

test.each([
  ["[x](https://example.com/路，口。)", ["https://example.com/路，口。"]],
  ["<https://example.com/路，口>", ["https://example.com/路，口"]],
  ["https://zh.wikipedia.org/wiki/中文 ok", ["https://zh.wikipedia.org/wiki/中文"]],
  [
    "https://example.com/x_(y), and (https://example.com/z).",
    ["https://example.com/x_(y)", "https://example.com/z"],
  ],
  ["https://，后", []],
])("links of %s lead to %j", (text, expected) => expect(addresses(text)).toEqual(expected));

// GitHub's examples with one tilde: the only intended difference from its specification.
test.each([
  ["~~Hi~~ Hello, ~there~ world!", "<Hi> Hello, ~there~ world!"],
  ["This will ~~~not~~~ strike.", "This will ~~~not~~~ strike."],
  ["This ~~has a\n\nnew paragraph~~.", "This ~~has a\n\nnew paragraph~~."],
  // Ranges, approximations, folders.
  ["价格在 10~20 元之间，重量 3~5 公斤。", "价格在 10~20 元之间，重量 3~5 公斤。"],
  ["It takes 2~3 minutes and 5~6 MB.", "It takes 2~3 minutes and 5~6 MB."],
  ["Expect ~5 MB now and ~10 MB later.", "Expect ~5 MB now and ~10 MB later."],
  ["~/a 和 ~/b，上午~下午，甲~乙", "~/a 和 ~/b，上午~下午，甲~乙"],
  ["~~10~20 元~~ 3~5", "<10~20 元> 3~5"],
  ["~~真的删除~~ and ~~really deleted~~.", "<真的删除> and <really deleted>."],
])("%j with tildes becomes %j", (text, expected) => expect(marked(text)).toBe(expected));

test.each([
  ["```js\nx\n```", true],
  ["```js\nx\n````  \n", true],
  ["~~~\n```\n", false],
  ["````\n```\n", false],
  ["```\n", false],
  ["```", false],
  ["    indented", true],
])("%j is closed: %s", (raw, expected) => expect(isFenceClosed(raw)).toBe(expected));

test.each([
  ["https://a.example/b", "a.example"],
  ["HTTP://A.example", "a.example"],
  ["mailto:a@b.example", ""],
])("%s is an external link", (href, host) => expect(safeHref(href)?.host).toBe(host));

test.each([
  "javascript:alert(1)",
  " java\nscript:alert(1)",
  "data:text/html,x",
  "vbscript:x",
  "//evil.example",
  "/here",
  "file:///etc/passwd",
  "blob:https://a/b",
  "",
])("%j is not a link", (href) => expect(safeHref(href)).toBeUndefined());
