// SVG helpers: elements by name, and attributes that are written only when they change.

const SVG = "http://www.w3.org/2000/svg";

type Attributes = Readonly<Record<string, string | number>>;

export function svg(
  tag: string,
  attributes: Attributes = {},
  ...children: readonly SVGElement[]
): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A constant shape. */
export const shape = (d: string, attributes: Attributes = {}): SVGElement =>
  svg("path", { d, ...attributes });

/** A constant line. */
export const line = (d: string, stroke: string, width: number, attributes: Attributes = {}): SVGElement =>
  svg("path", { d, fill: "none", stroke, "stroke-width": width, "stroke-linecap": "round", ...attributes });

/** A gradient from top to bottom. */
export function gradient(id: string, ...colors: readonly string[]): SVGElement {
  const stops = colors.map((color, at) =>
    svg("stop", { offset: at / (colors.length - 1), "stop-color": color }),
  );
  return svg("linearGradient", { id, x1: 0, y1: 0, x2: 0, y2: 1 }, ...stops);
}

/** An attribute that is written only when its value changes. */
export class Changing {
  readonly #element: Element;
  readonly #name: string;
  #value = "";

  constructor(element: Element, name: string) {
    this.#element = element;
    this.#name = name;
  }

  set(value: string): void {
    if (value === this.#value) return;
    this.#value = value;
    this.#element.setAttribute(this.#name, value);
  }
}

/** A number with few digits: more are invisible. */
export const short = (n: number): string => String(Math.round(n * 10) / 10);

/** Path data with shortened numbers. */
export function path(parts: TemplateStringsArray, ...numbers: readonly number[]): string {
  return parts.reduce((all, part, at) => all + short(numbers[at - 1] ?? 0) + part);
}
