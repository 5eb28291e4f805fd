// No element of any view shows a text with invisible characters.

import { render } from "@testing-library/react";
import { memo } from "react";
import { expect, test } from "vitest";

const TURNED = "\u202e2026-11-24";

test("hidden character is shown as its escape, in its own color", () => {
  const { container } = render(
    <section title={TURNED} aria-label={`x ${TURNED}`}>
      {TURNED} and <b>{`a\u200b${TURNED}`}</b> {["\u{e0041}", 1, null]}
    </section>,
  );
  expect(container.textContent).toBe("\\u202e2026-11-24 and a\\u200b\\u202e2026-11-24 \\udb40\\udc411");
  expect([...container.querySelectorAll(".unseen")].map(({ textContent }) => textContent)).toEqual([
    "\\u202e",
    "\\u200b\\u202e",
    "\\udb40\\udc41",
  ]);
  const { title, ariaLabel } = container.firstElementChild as HTMLElement;
  expect([title, container.firstElementChild?.getAttribute("aria-label") ?? ariaLabel]).toEqual([
    "\\u202e2026-11-24",
    "x \\u202e2026-11-24",
  ]);
});

test("characters that letters need stay in prose, and are shown in data", () => {
  const persian = "می\u200cخواهم";
  const { container } = render(
    <div>
      <p>{persian}</p>
      <code>{persian}</code>
      <select>
        <option>{`${persian}\u202e`}</option>
      </select>
    </div>,
  );
  const texts = [...container.querySelectorAll("p, code, option")].map(({ textContent }) => textContent);
  expect(texts).toEqual([persian, "می\\u200cخواهم", `${persian}\\u202e`]);
});

test("component gets its text unchanged", () => {
  const Message = memo(function Message({ children }: { children: string }) {
    return <i data-length={children.length}>{children}</i>;
  });
  const { container } = render(<Message>{TURNED}</Message>);
  expect(container.querySelector("i")?.dataset.length).toBe("11");
  expect(container.textContent).toBe("\\u202e2026-11-24");
});

test("right-to-left value does not reverse the text around it", () => {
  const { container } = render(<pre>{'{"\u05e9": "\u05dc\\"\u202e", "n": 1}'}</pre>);
  const isolated = [...container.querySelectorAll("pre > bdi")].map(({ textContent }) => textContent);
  expect(isolated).toEqual(['"\u05e9"', '"\u05dc\\"\\u202e"', '"n"']);
  expect(container.textContent).toBe('{"\u05e9": "\u05dc\\"\\u202e", "n": 1}');
});
