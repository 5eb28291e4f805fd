// Markup that attacks sanitizers, wherever a model can put it: it stays text, or inside a frame.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { BrowserUser } from "../browser.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const OWN: readonly string[] = [
  "<script>document.title='evil'</script>",
  "<img src=https://evil.example/i onerror=document.title='evil'>",
  "<svg/onload=document.title='evil'><animate onbegin=document.title='evil' attributeName=x dur=1s>",
  "</style></title></textarea><script>document.title='evil'</script>",
  "\\href{javascript:document.title='evil'}{x} \\includegraphics{https://evil.example/i} \\class{evil}{x}",
  "<math><maction actiontype=statusline xlink:href=javascript:document.title='evil'>x</maction></math>",
  "<iframe srcdoc=\"<script>parent.document.title='evil'</script>\"></iframe>",
];
const suite = join(process.env.THROUGHLINE_VECTORS ?? "", "suites/html-xss/payloads.jsonl");
const SUITE: readonly string[] =
  process.env.THROUGHLINE_VECTORS !== undefined && existsSync(suite)
    ? readFileSync(suite, "utf8")
        .trim()
        .split("\n")
        .map((line): string => JSON.parse(line).payload)
    : [];
const PAYLOADS = [...OWN, ...SUITE];

const oneLine = (text: string): string => text.replace(/\s+/g, " ");
/** A fence that no text can close. */
const fenced = (language: string, text: string): string => `~~~~~~~~~~${language}\n${text}\n~~~~~~~~~~\n\n`;
const inParts = (size: number): string[][] =>
  Array.from({ length: Math.ceil(PAYLOADS.length / size) }, (_, at) =>
    PAYLOADS.slice(at * size, (at + 1) * size),
  );

const MATHS = PAYLOADS.map(
  (one) =>
    `$x_{${oneLine(one)}}$ and \\(\\text{${oneLine(one)}}\\)\n\n${fenced("math", `\\frac{${one}}{2}`)}`,
).join("");
const TEXT = PAYLOADS.map(
  (one) =>
    `# ${oneLine(one)}\n\n| ${oneLine(one)} |\n| - |\n| ${oneLine(one)} |\n\n> ${oneLine(one)}\n\n${one}\n\n`,
).join("");
const PREVIEW =
  fenced("html", PAYLOADS.join("\n")) +
  fenced("svg", `<svg xmlns="http://www.w3.org/2000/svg">${OWN.join("")}</svg>`);
const DIAGRAMS = inParts(40)
  .map((part) => {
    const nodes = part.map((one, at) => `  n${at}["${oneLine(one).replaceAll('"', "#quot;")}"]`);
    return fenced("mermaid", `flowchart TB\n${nodes.join("\n")}`);
  })
  .join("");

const says = (word: string, text: string): Rule => ({
  when: { contains: word, step: 1 },
  does: [{ say: text }],
});
const fixture = ServerFixture.of(() =>
  Server.scripted([
    says("formulas", MATHS),
    says("words", TEXT),
    says("documents", PREVIEW),
    says("drawings", DIAGRAMS),
    { does: [{ say: "Nothing." }] },
  ]),
);

/** Checks that there are no elements, attributes or addresses that could run code. */
async function expectInert(page: Page): Promise<void> {
  const found = await page.evaluate(() => {
    const names = "script, iframe, object, embed, base, link, style, form, img, image, animate, set, maction";
    const addresses = ["href", "xlink:href", "src", "srcset", "action", "formaction", "data"];
    const isHarmful = (one: Element): boolean =>
      (one.matches(`article :is(${names})`) && !one.matches("iframe[sandbox='allow-scripts']")) ||
      [...one.attributes].some(
        ({ name, value }) =>
          name.startsWith("on") ||
          name === "srcdoc" ||
          (addresses.includes(name) && /^\s*(javascript|data|vbscript):/i.test(value)),
      );
    const all = [...document.querySelectorAll("body *")];
    return all.filter(isHarmful).map((one) => one.outerHTML.slice(0, 200));
  });
  expect(found).toEqual([]);
  expect(await page.title()).not.toBe("evil");
}

test.each(["formulas", "words"])("markup in %s is text", async (kind) => {
  const user = await fixture.user();
  const { page } = user;
  let dialogs = 0;
  page.on("dialog", () => {
    dialogs += 1;
  });
  await user.send(`${kind}, please`);
  await user.settled();
  const drawn = kind === "formulas" ? ".markdown :is(math, .maths-wrong)" : ".markdown table";
  await page.locator(drawn).first().waitFor();
  await expectInert(page);
  expect(dialogs).toBe(0);
});

test("markup in an approval, a title and a list is text", async () => {
  const user = await fixture.user();
  for (const one of OWN) {
    await user.send(one);
    await user.settled();
  }
  await expectInert(user.page);
});

test("markup on a shared page is text", async () => {
  const user = await fixture.user();
  await user.send(`words and formulas ${OWN[0]}`);
  await user.settled();
  await user.send("formulas");
  await user.settled();
  const client = await fixture.server.client();
  const { items } = await client.call("GET /v1/conversations", { query: { limit: 1 } });
  const path = { conversation_id: items[0]?.id ?? "" };
  const { link } = await client.call("POST /v1/conversations/{conversation_id}/shares", { path, body: {} });
  const reader = await fixture.anonymous();
  await reader.page.goto(link);
  await reader.page.getByRole("article").nth(3).waitFor();
  await expectInert(reader.page);
});

test.each(["documents", "drawings"])("markup in %s reaches neither the page nor a network", async (kind) => {
  // Violations are logged for attempts in a frame, so this user is not of the fixture.
  const user = await BrowserUser.open();
  const { page } = user;
  let dialogs = 0;
  page.on("dialog", () => {
    dialogs += 1;
  });
  // How each navigation attempt ended.
  const others: string[] = [];
  const isElsewhere = (url: string) => /^https?:/.test(url) && !url.startsWith(fixture.server.url);
  page.on("requestfailed", (one) => {
    if (isElsewhere(one.url())) others.push(`${one.url()} ${one.failure()?.errorText}`);
  });
  page.on("response", (one) => {
    if (isElsewhere(one.url())) others.push(`${one.url()} ${one.status()}`);
  });
  await page.goto(`${fixture.server.url}/#token=${await fixture.server.key()}`);
  await user.send(`${kind}, please`);
  await user.settled();
  const previews = page.getByRole("button", { name: "Preview", exact: true });
  const blocks = kind === "documents" ? 2 : inParts(40).length;
  if (kind === "documents") for (const at of [0, 1]) await previews.nth(at).click();
  const frames = page.locator("iframe[sandbox='allow-scripts']");
  // Each is drawn, or an error is shown.
  await expect
    .poll(async () => (await frames.count()) + (await page.locator(".code-note").count()))
    .toBeGreaterThanOrEqual(blocks);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await expectInert(page);
  expect(page.url()).toMatch(new RegExp(`^${fixture.server.url}/`));
  expect(dialogs).toBe(0);
  expect(others.filter((one) => !one.endsWith("BLOCKED_BY_CSP") && !one.endsWith(" csp"))).toEqual([]);
  await user.close();
});
