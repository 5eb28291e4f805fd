// TeX as MathML: the library's tree is checked against allowlists and becomes elements one by one. There is no intermediate markup,
// no address and no style. Loaded with the first formula.

import "./maths.css";
import { visible } from "@throughline/visible";
import { createElement, type ReactElement, type ReactNode } from "react";
import temml from "temml";
import { copySources } from "./copy.ts";

/** Nesting limit of a formula; deeper ones are shown as source. */
const DEPTH_MAX = 120;
/** Maximum number of elements in a formula. */
const NODES_MAX = 6_000;
/** Maximum number of macro expansions in a formula. */
const EXPANSIONS_MAX = 500;
/** Maximum length in a formula, in em. */
const LENGTH_EM_MAX = 40;
/** Size of the cache of rendered formulas. */
const REMEMBERED_MAX = 300;

const ELEMENTS: ReadonlySet<string> = new Set(
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd mpadded mphantom mstyle menclose merror".split(
    " ",
  ),
);
const ATTRIBUTES: ReadonlySet<string> = new Set(
  "accent accentunder columnalign columnlines columnspacing columnspan depth display displaystyle fence form height largeop linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowspacing rowspan rspace scriptlevel separator stretchy symmetric voffset width".split(
    " ",
  ),
);
const VALUE = /^(?!.*\d{4})[\w\s.,#%+-]{0,64}$/;
const CLASS = /^(?:tml-[a-z-]+|mathscr|mathcal|upstrike|downstrike|sout)$/;
const COLOR = /^(?:#[\da-f]{3,8}|[a-z]{3,20})$/i;

/** Allowed styles of the library, mapped to our classes. */
const STYLES: readonly (readonly [property: string, value: RegExp, className: string])[] = [
  ["paddingLeft", /^0(em|pt)?$/, "maths-start"],
  ["paddingRight", /^0(em|pt)?$/, "maths-end"],
  ["paddingLeft", /^1em$/, "maths-apart"],
  ["textAlign", /^left$/, "tml-left"],
  ["borderTop", /./, "maths-line-top"],
  ["borderBottom", /./, "maths-line-bottom"],
  ["borderLeft", /./, "maths-line-left"],
  ["borderRight", /./, "maths-line-right"],
  ["border", /./, "maths-boxed"],
  ["fontWeight", /^bold$/, "maths-bold"],
  ["width", /^50%$/, "maths-half"],
  ["width", /^100%$/, "maths-whole"],
  ["mathDepth", /^0$/, "maths-large"],
  ["math-depth", /^0$/, "maths-large"],
];

interface Node {
  readonly type?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly children?: readonly Node[];
  readonly classes?: readonly string[];
  readonly style?: Readonly<Record<string, unknown>>;
}

export type Drawn = { readonly element: ReactElement } | { readonly error: string };

const remembered = new Map<string, Drawn>();

/** Element of a formula; cached by source. */
export function mathOf(tex: string, isDisplay: boolean): Drawn {
  const key = `${isDisplay ? "d" : "i"}${tex}`;
  const before = remembered.get(key);
  if (before !== undefined) return before;
  const drawn = draw(tex, isDisplay);
  if (remembered.size >= REMEMBERED_MAX) remembered.delete(remembered.keys().next().value ?? "");
  remembered.set(key, drawn);
  return drawn;
}

function draw(tex: string, isDisplay: boolean): Drawn {
  try {
    const tree: Node = temml.__renderToMathMLTree(tex, {
      displayMode: isDisplay,
      throwOnError: true,
      trust: false,
      wrap: "none",
      maxExpand: EXPANSIONS_MAX,
      maxSize: [LENGTH_EM_MAX, LENGTH_EM_MAX],
      macros: {},
    });
    const root = tree.type === "math" ? tree : tree.children?.find(({ type }) => type === "math");
    if (root === undefined) return { error: "no formula" };
    const count = { nodes: 0 };
    const shown = elementOf(root, "math", 0, count);
    return typeof shown === "object" && shown !== null && "props" in shown
      ? { element: shown as ReactElement }
      : { error: "no formula" };
  } catch (error) {
    return { error: visible(error instanceof Error ? error.message : String(error)).slice(0, 300) };
  }
}

function elementOf(node: Node, key: string, depth: number, count: { nodes: number }): ReactNode {
  count.nodes += 1;
  if (depth > DEPTH_MAX || count.nodes > NODES_MAX) throw new RangeError("the formula is too large");
  if (typeof node.text === "string") return textOf(node.text);
  const children = (node.children ?? []).map((child, at) => elementOf(child, `${at}`, depth + 1, count));
  const type = node.type ?? "mrow";
  return createElement(ELEMENTS.has(type) ? type : "mrow", { key, ...propertiesOf(node) }, ...children);
}

/** Operators of MathML may be invisible: function application and product. */
function textOf(text: string): string {
  return text.replace(/[^\u2061-\u2064]+/g, visible);
}

function propertiesOf({ attributes = {}, classes = [], style = {} }: Node): Record<string, string> {
  const properties: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (ATTRIBUTES.has(name) && VALUE.test(text)) properties[name] = text;
  }
  const { color } = style;
  if (typeof color === "string" && COLOR.test(color)) properties.mathcolor = color;
  const styleClasses = STYLES.filter(
    ([property, value]) => property in style && value.test(String(style[property])),
  );
  const names = [...classes.filter((name) => CLASS.test(name)), ...styleClasses.map(([, , name]) => name)];
  if (names.length > 0) properties.className = [...new Set(names)].join(" ");
  return properties;
}

copySources(document);
