import { render, waitFor } from "@testing-library/react";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { piecesOf } from "../src/chat/blocks/highlight.ts";
import { languageNames } from "../src/chat/blocks/languages.ts";
import { Markdown } from "../src/chat/blocks/markdown/markdown.tsx";

test.each([
  ["rust", "fn main() { let x = 1; } // end", { fn: "key", main: "name", "1": "number", "// end": "remark" }],
  ["ts", 'const a: string = "text";', { const: "key", '"text"': "text" }],
  ["py", "def f():\n    return None", { def: "key", f: "name", None: "number" }],
  ["html", "<b>x</b><script>let y</script>", { b: "name" }],
  ["js", "const a = `text`;", { const: "key" }],
  [
    "css",
    "@media (width > 9px) { .card:hover > b::before { color: #fff; margin: 0 1.5em !important } } /* end */",
    {
      "@media": "key",
      color: "name",
      margin: "name",
      "#fff": "number",
      "1.5em": "number",
      "/* end */": "remark",
    },
  ],
  ["sql", "SELECT a FROM b -- end", { SELECT: "key", "-- end": "remark" }],
  ["go", "func main() { return nil }", { func: "key", main: "name", nil: "number" }],
  [
    "java",
    "@Override public String f() {}",
    { "@Override": "key", public: "key", String: "name", f: "name" },
  ],
  ["c", "#include <a.h>\nint f(void);", { "#include": "key", int: "key", f: "name" }],
  ["sh", 'echo "$HOME" $X # end', { echo: "key", $X: "name", "# end": "remark" }],
  ["json", '{"a": 1}', { '"a"': "name", "1": "number" }],
])("%s is highlighted, and its text stays the same", (language, code, expected) => {
  const pieces = piecesOf(code, language);
  expect(pieces.map(({ text }) => text).join("")).toBe(code);
  for (const [text, color] of Object.entries(expected)) {
    expect(pieces.find((piece) => piece.text.trim() === text)?.color, text).toBe(color);
  }
});

test.each(languageNames())("any text as %s stays the same, with any number of unclosed brackets", (name) => {
  const word = fc.constantFrom(
    '"',
    "'",
    "`",
    '"""',
    "/*",
    "*/",
    "//",
    "#",
    "--",
    "<",
    "<!--",
    "-->",
    "=",
    ":",
    "{",
    "}",
    ";",
    "\\",
    "\n",
    " ",
    "a-b",
    "$x",
    "0x1f",
    "名",
    "👩‍👩‍👧",
    "\ud83d",
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 40 }), (words) => {
      const code = words.join("");
      expect(
        piecesOf(code, name)
          .map(({ text }) => text)
          .join(""),
      ).toBe(code);
    }),
    { numRuns: 200 },
  );
  // Quadratic time would not end here.
  for (const part of ["a", "a-", " ", "=", "'", "<a ", "\\", "{", "#"]) {
    const long = part.repeat(64_000 / part.length);
    expect(piecesOf(long, name).reduce((chars, { text }) => chars + text.length, 0)).toBe(long.length);
  }
});

test("code is highlighted when its fence is closed and its language known", async () => {
  const open = "```rust\nfn main() {}";
  const { container, rerender } = render(<Markdown text={open} isOpen />);
  rerender(<Markdown text={`${open}\n\`\`\`\n\n\`\`\`cobol\nMOVE A TO B.\n\`\`\`\n`} isOpen />);
  expect(container.querySelector("[data-token]")).toBeNull();
  await waitFor(() => expect(container.querySelector('[data-token="key"]')).toHaveTextContent("fn"), {
    timeout: 10_000,
  });
  expect(container.querySelectorAll("code")[1]?.children).toHaveLength(0);
});

test("open fence is not highlighted", () => {
  const idle = vi.fn(() => 1);
  vi.stubGlobal("requestIdleCallback", idle);
  vi.stubGlobal("cancelIdleCallback", vi.fn());
  const { rerender, unmount } = render(<Markdown text={"```rust\nfn main() {}"} isOpen />);
  expect(idle).not.toHaveBeenCalled();
  rerender(<Markdown text={"```rust\nfn main() {}\n```\n\nend"} isOpen />);
  expect(idle).toHaveBeenCalledOnce();
  unmount();
  vi.unstubAllGlobals();
});
