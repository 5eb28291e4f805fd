// One eye: the visible part, the lash, and the brow above.

import * as color from "./colors.ts";
import { Changing, line, path, shape, short, svg } from "./svg.ts";

const WIDTH = 21;
const LOOK = 5.5;

const STAR = "M0,-15 L4,-5 L14.5,-4.4 L6.4,2.6 L9,13 L0,7.2 L-9,13 L-6.4,2.6 L-14.5,-4.4 L-4,-5 Z";

export interface EyePose {
  open: number;
  joy: number;
  lookX: number;
  lookY: number;
  pupil: number;
  stars: number;
  brow: number;
  frown: number;
}

export class Eye {
  readonly element: SVGElement;
  readonly brow: SVGElement;
  /** 1: the outer corner is on the right. */
  readonly #side: 1 | -1;
  readonly #opening: Changing;
  readonly #lash: Changing;
  readonly #fold: Changing;
  readonly #foldSeen: Changing;
  readonly #inner: Changing;
  readonly #ball: Changing;
  readonly #iris: Changing;
  readonly #stars: Changing;
  readonly #browLine: Changing;

  constructor(x: number, y: number, side: 1 | -1, ids: { clip: string; iris: string }) {
    this.#side = side;
    const opening = svg("path");
    const ball = svg("ellipse", { cx: 0, cy: 1, rx: 25, ry: 27, fill: color.WHITE });
    const stars = shape(STAR, { fill: color.GOLD, stroke: "#fff3c4", "stroke-width": 2 });
    const iris = svg(
      "g",
      {},
      svg("ellipse", { rx: 15, ry: 19, fill: `url(#${ids.iris})`, stroke: "#6b3410", "stroke-width": 1.6 }),
      svg("ellipse", { cy: 0, rx: 6.6, ry: 9.4, fill: color.PUPIL }),
      svg("ellipse", { cy: 11.5, rx: 8.5, ry: 4.6, fill: "#ffedb0", opacity: 0.75 }),
      stars,
    );
    const shine = svg(
      "g",
      { fill: "#fff" },
      svg("ellipse", { cx: -5.4, cy: -7.6, rx: 5.2, ry: 6.4 }),
      svg("circle", { cx: 6.4, cy: 7.6, r: 2.7, opacity: 0.95 }),
    );
    const shade = svg("ellipse", { cx: 0, cy: -22, rx: 26, ry: 11, fill: "#7d5a74", opacity: 0.28 });
    const inner = svg("g", { "clip-path": `url(#${ids.clip})` }, ball, svg("g", {}, iris, shine), shade);
    const looking = inner.children[1];
    const lash = line("", color.LINE, 5);
    const fold = line("", "#c98f7d", 1.8);
    this.element = svg(
      "g",
      { transform: `translate(${x} ${y})` },
      svg("clipPath", { id: ids.clip }, opening),
      inner,
      lash,
      fold,
    );
    const brow = line("", color.HAIR_LINE, 4.6);
    this.brow = svg("g", { transform: `translate(${x} ${y - 36})` }, brow);
    this.#opening = new Changing(opening, "d");
    this.#lash = new Changing(lash, "d");
    this.#fold = new Changing(fold, "d");
    this.#foldSeen = new Changing(fold, "opacity");
    this.#inner = new Changing(inner, "opacity");
    this.#ball = new Changing(looking ?? inner, "transform");
    this.#iris = new Changing(iris, "transform");
    this.#stars = new Changing(stars, "opacity");
    this.#browLine = new Changing(brow, "d");
  }

  draw({ open, joy, lookX, lookY, pupil, stars, brow, frown }: EyePose): void {
    const side = this.#side;
    const o = Math.max(0, Math.min(1.25, open));
    const isShut = o < 0.06;
    // Corners of the lids, and the curvature of the upper and the lower one.
    const [inX, outX] = [-WIDTH * side * 0.92, WIDTH * side];
    const end = 8 - o * 7;
    const outer = end - o * 1.5;
    const shut = 9 - joy * 27;
    const upper = shut + (-33 - shut) * Math.min(1.2, o);
    const lower = Math.max(upper, 9 + o * 20 - joy * o * 5);
    const lid = path`M${inX},${end} C${inX * 0.86},${upper} ${outX * 0.82},${upper} ${outX},${outer}`;
    this.#opening.set(
      `${lid} ${path`C${outX * 0.8},${lower + 1} ${inX * 0.78},${lower + 1} ${inX},${end} Z`}`,
    );
    const flick = isShut && joy > 0.5 ? "" : path` M${outX * 0.98},${outer} l${4.5 * side},${-3.5 - o * 2}`;
    this.#lash.set(lid + flick);
    this.#fold.set(
      path`M${inX * 0.62},${upper * 0.75 - 6} Q${outX * 0.3},${upper * 0.75 - 11} ${outX * 0.92},${upper * 0.5 - 5}`,
    );
    this.#foldSeen.set(short(Math.max(0, Math.min(0.9, o * 1.4 - 0.4))));
    this.#inner.set(isShut ? "0" : "1");
    this.#ball.set(path`translate(${lookX * LOOK} ${lookY * LOOK + 1.5})`);
    this.#iris.set(`scale(${Math.round(pupil * 100) / 100})`);
    this.#stars.set(short(stars));
    // The inner end of the brow goes down with a frown, and up with sorrow.
    const [near, far] = [frown * 8, -frown * 4];
    this.#browLine.set(
      path`M${-15 * side},${brow + near} Q${2 * side},${brow - 6 + (near + far) / 2} ${17 * side},${brow + 2 + far}`,
    );
  }
}
