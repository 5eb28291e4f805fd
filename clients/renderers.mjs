// Answers that end with a question, as Markdown renderers show them. Whatever the model wrote in front of the question, a person
// sees it in full, once, unstyled and last. The cases come as lines of JSON on standard input, and what fails goes out the same way.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

// React's checks of its development build take most of the time, and complain about the model's HTML.
process.env.NODE_ENV = "production";
// KaTeX says of every character for which it has no metrics that it has none.
console.warn = () => {};

const require = createRequire(process.env.PACKAGES + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: MarkdownIt } = await load("markdown-it");
const { default: markdownItKatex } = await load("@vscode/markdown-it-katex");
const { Marked } = await load("marked");
const { default: markedKatex } = await load("marked-katex-extension");
const { createElement } = await load("react");
const { renderToStaticMarkup } = await load("react-dom/server");
const { default: ReactMarkdown } = await load("react-markdown");
const { default: remarkGfm } = await load("remark-gfm");
const { default: remarkMath } = await load("remark-math");
const { default: rehypeRaw } = await load("rehype-raw");
const { parseFragment } = await load("parse5");

const markdownIt = (renderer) => (markdown) => renderer.render(markdown);
const marked = (renderer) => (markdown) => renderer.parse(markdown);
const react = (plugins) => (children) =>
  renderToStaticMarkup(createElement(ReactMarkdown, { ...plugins, children }));

// Without warnings about what is no LaTeX.
const katex = { strict: "ignore", throwOnError: false };

const renderers = {
  "markdown-it": markdownIt(new MarkdownIt({ html: true })),
  "markdown-it-plain": markdownIt(new MarkdownIt({ html: false })),
  // Without the typographer, which is to change quotes.
  "markdown-it-linkify": markdownIt(new MarkdownIt({ html: true, linkify: true })),
  "markdown-it-math": markdownIt(new MarkdownIt({ html: true }).use(markdownItKatex.default, katex)),
  marked: marked(new Marked({ gfm: true })),
  "marked-math": marked(new Marked({ gfm: true }, markedKatex(katex))),
  "react-markdown": react({}),
  "react-markdown-gfm": react({ remarkPlugins: [remarkGfm] }),
  "react-markdown-raw": react({ remarkPlugins: [remarkGfm], rehypePlugins: [rehypeRaw] }),
  "react-markdown-math": react({ remarkPlugins: [remarkGfm, remarkMath], rehypePlugins: [rehypeRaw] }),
};

/** Elements whose text is not on the page, or not as text. */
const HIDDEN = new Set(
  `audio button canvas datalist dialog head iframe math meter noembed noframes noscript object optgroup option
  progress script select style svg template textarea title video xmp`.split(/\s+/),
);

/** What may be around the question, and the attributes that renderers give it. */
const BLOCKS = { blockquote: [], p: [], pre: [] };
const INLINE = { a: ["href"], code: ["class"], strong: [] };

const squeezed = (text) => text.replace(/\s+/gu, "");
const attribute = (element, name) => element.attrs.find((one) => one.name === name)?.value;

/** Every element inside, hidden ones too. */
function* elements(node) {
  for (const child of node.childNodes ?? []) {
    if (child.tagName) yield child;
    yield* elements(child);
  }
}

/** Every text that is seen, without its white space, and the elements around it from the outside in. */
function* texts(node, around = []) {
  for (const child of node.childNodes) {
    if (child.nodeName === "#text") {
      yield { text: squeezed(child.value), around };
    } else if (child.tagName) {
      const isFolded = node.tagName === "details" && attribute(node, "open") === undefined;
      const isHidden = HIDDEN.has(child.tagName) || (isFolded && child.tagName !== "summary");
      if (isHidden || child.attrs.some(({ name }) => name === "hidden" || name === "popover")) continue;
      yield* texts(child, [...around, child]);
    }
  }
}

/** Whether an element has nothing that a renderer does not give it. */
function isPlain({ tagName, attrs }, allowed) {
  const isOwn = ({ name, value }) =>
    allowed[tagName].includes(name) && (name !== "class" || /^language-\w+$/.test(value));
  return Object.hasOwn(allowed, tagName) && attrs.every(isOwn);
}

/** Whether these are blocks with inline elements inside them. Inline ones that the model left open come before blocks. */
function isUnstyled(around) {
  const inline = around.findIndex(({ tagName }) => Object.hasOwn(INLINE, tagName));
  const blocks = inline < 0 ? around : around.slice(0, inline);
  return (
    blocks.every((one) => isPlain(one, BLOCKS)) &&
    around.slice(blocks.length).every((one) => isPlain(one, INLINE))
  );
}

/** Whether an element changes how others look: they move or cover the question. Math and the columns of tables have styles. */
function isStyling(element, hasMath) {
  if (element.tagName === "style" || element.tagName === "link") return true;
  const style = attribute(element, "style");
  return style !== undefined && !hasMath && !/^text-align:\s*\w+;?$/.test(style);
}

/** What a page puts the HTML into. The model cannot close it. */
const message = parseFragment("<div></div>").childNodes[0];

/** What is wrong with the question in this page, if anything. */
function wrong(html, seen, hasMath) {
  const root = parseFragment(message, html);
  const parts = [...texts(root)].filter(({ text }) => text !== "");
  const page = parts.map(({ text }) => text).join("");
  const question = squeezed(seen.join(""));
  if (!page.endsWith(question)) return `not the last that is seen: …${page.slice(-question.length)}`;
  const times = page.split(squeezed(seen.at(-1))).length - 1;
  if (times !== 1) return `its last text is seen ${times} times`;
  let end = 0;
  let isStart = true;
  for (const { text, around } of parts) {
    end += text.length;
    if (end <= page.length - question.length) continue;
    // The question begins as plain text of a quote: what is bold there, or a link, was opened by the model.
    const names = around.map(({ tagName }) => tagName);
    const isQuote = names.includes("blockquote") && names.every((name) => Object.hasOwn(BLOCKS, name));
    if (!isUnstyled(around) || (isStart && !isQuote)) return `restyled: "${text}" in <${names.join("> <")}>`;
    isStart = false;
  }
  const styling = [...elements(root)].find((element) => isStyling(element, hasMath));
  return styling && `a <${styling.tagName}> can restyle the page`;
}

let checked = 0;
let failed = 0;

/** Judges what `render` makes of a case. */
function check({ name, seen }, renderer, render) {
  let html = "";
  let why;
  try {
    html = render();
    why = wrong(html, seen, renderer.endsWith("-math"));
  } catch (error) {
    why = `throws: ${error.message}`;
  }
  checked += 1;
  if (why === undefined) return;
  failed += 1;
  console.log(JSON.stringify({ name, renderer, why, html: html.slice(0, 2_000) }));
}

const cases = [];
for await (const line of createInterface({ input: process.stdin })) cases.push(JSON.parse(line));

// Python renders meanwhile.
const script = fileURLToPath(new URL("renderers.py", import.meta.url));
const python = spawn(process.env.PYTHON, [script], { stdio: ["pipe", "pipe", "inherit"] });
const ended = once(python, "close");
const lines = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
python.stdin.end(cases.map((one) => `${JSON.stringify(one)}\n`).join(""));

for (const one of cases) {
  for (const [renderer, render] of Object.entries(renderers)) {
    check(one, renderer, () => render(one.markdown));
  }
  const { value, done } = await lines.next();
  assert.ok(!done, "Python ends early");
  for (const [renderer, { html, error }] of Object.entries(JSON.parse(value))) {
    check(one, renderer, () => {
      if (error) throw new Error(error);
      return html;
    });
  }
}
assert.deepEqual(await ended, [0, null], "how Python ends");

console.log(JSON.stringify({ checked }));
process.exitCode = failed === 0 ? 0 : 1;
