// Little helpers to draw with: elements by name, and parts that are only touched when they change.

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

/** A shape that does not change. */
export const shape = (d: string, attributes: Attributes = {}): SVGElement =>
  svg("path", { d, ...attributes });

/** A line that does not change. */
export const line = (d: string, stroke: string, width: number, attributes: Attributes = {}): SVGElement =>
  svg("path", { d, fill: "none", stroke, "stroke-width": width, "stroke-linecap": "round", ...attributes });

/** Colors from top to bottom. */
export function gradient(id: string, ...colors: readonly string[]): SVGElement {
  const stops = colors.map((color, at) =>
    svg("stop", { offset: at / (colors.length - 1), "stop-color": color }),
  );
  return svg("linearGradient", { id, x1: 0, y1: 0, x2: 0, y2: 1 }, ...stops);
}

/** An attribute that changes: set only when it is another one. */
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

/** As short as it can be drawn: more digits than these nobody sees. */
export const short = (n: number): string => String(Math.round(n * 10) / 10);

/** The numbers of a path, shortened. */
export function path(parts: TemplateStringsArray, ...numbers: readonly number[]): string {
  return parts.reduce((all, part, at) => all + short(numbers[at - 1] ?? 0) + part);
}
