// JSX runtime in which no element shows a text with invisible characters: enforced by element creation, not by each view.

import { Fragment, type JSX, jsx, jsxs } from "react/jsx-runtime";
import { parts } from "./index.ts";

export type Props = Readonly<Record<string, unknown>>;

/** Elements whose text is data, shown exactly. */
const EXACT: ReadonlySet<unknown> = new Set(["pre", "code", "bdi", "b", "ins", "del"]);
const SPOKEN = ["title", "aria-label", "placeholder", "alt"];
/** A quoted text in right-to-left letters, which must not reverse the text around it. */
const QUOTED = /("(?:[^"\\]|\\.)*")/;
const FROM_RIGHT = /[\u0590-\u08ff\ufb1d-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Props of an element with invisible characters escaped. Props of components stay unchanged. */
export function shown(type: unknown, props: Props): Props {
  if (typeof type !== "string" && type !== Fragment) return props;
  const given = { ...props, children: child(type, props.children) };
  for (const name of SPOKEN) {
    const text = props[name];
    if (typeof text === "string") Object.assign(given, { [name]: parts(text, true).join("") });
  }
  return given;
}

function child(type: unknown, given: unknown): unknown {
  if (Array.isArray(given)) return given.map((one) => child(type, one));
  if (typeof given !== "string") return given;
  if (type === "pre" && FROM_RIGHT.test(given))
    return jsxs(Fragment, {
      children: given
        .split(QUOTED)
        .map((part, at) => (at % 2 ? jsx("bdi", { children: child("bdi", part) }) : child("bdi", part))),
    });
  const texts = parts(given, !EXACT.has(type));
  // An option contains only text.
  if (texts.length === 1 || type === "option") return texts.join("");
  const chip = (text: string, at: number): JSX.Element | string =>
    at % 2 ? jsx("bdi", { className: "unseen", children: text }) : text;
  return jsxs(Fragment, { children: texts.map(chip) });
}
