// Symbols next to a face: tears, hearts, stars. The pose sets the opacity of each.

import * as color from "./colors.ts";
import type { Part, Pose } from "./pose.ts";
import { Changing, line, path, shape, svg } from "./svg.ts";

type Extra = Extract<Part, "tear" | "sweat" | "hearts" | "sparkles" | "anger" | "dots" | "snooze" | "gasp">;

const DROP = "M0,-11 C5,-3 8,1 8,5.5 A8,8 0 0 1 -8,5.5 C-8,1 -5,-3 0,-11 Z";
const HEART = "M0,9 C-13,0 -12,-11 -5.5,-11 C-2,-11 0,-8.5 0,-6.5 C0,-8.5 2,-11 5.5,-11 C12,-11 13,0 0,9 Z";
const SPARKLE = "M0,-13 Q2,-2 13,0 Q2,2 0,13 Q-2,2 -13,0 Q-2,-2 0,-13 Z";
const ZED = "M-7,-7 H7 L-7,7 H7";

const at = (x: number, y: number, size: number, child: SVGElement, turn = 0): SVGElement =>
  svg("g", { transform: `translate(${x} ${y}) rotate(${turn}) scale(${size})` }, child);
const drop = (): SVGElement =>
  svg(
    "g",
    {},
    shape(DROP, { fill: color.WATER, stroke: color.WATER_DARK, "stroke-width": 1.6 }),
    svg("ellipse", { cx: -2.6, cy: 5, rx: 1.8, ry: 3, fill: "#fff", opacity: 0.9 }),
  );
const heart = (): SVGElement =>
  svg(
    "g",
    {},
    shape(HEART, { fill: color.HEART }),
    svg("ellipse", { cx: -5, cy: -5.5, rx: 2.2, ry: 3, fill: "#fff", opacity: 0.65 }),
  );
const sparkle = (): SVGElement => shape(SPARKLE, { fill: color.GOLD });

/** Origin of each symbol, from which it grows when it appears. */
const DRAWN: Readonly<Record<Extra, { from: [number, number]; draw(): readonly SVGElement[] }>> = {
  tear: { from: [106, 205], draw: () => [at(103, 207, 0.95, drop()), at(216, 203, 0.6, drop())] },
  sweat: { from: [238, 118], draw: () => [at(238, 126, 1.1, drop(), -14)] },
  hearts: {
    from: [262, 90],
    draw: () => [
      at(266, 92, 1.35, heart(), 10),
      at(290, 58, 0.85, heart(), 16),
      at(48, 74, 0.8, heart(), -14),
    ],
  },
  sparkles: {
    from: [160, 90],
    draw: () => [
      at(276, 72, 1.3, sparkle()),
      at(296, 112, 0.65, sparkle()),
      at(44, 84, 1, sparkle()),
      at(30, 124, 0.5, sparkle()),
    ],
  },
  anger: {
    from: [250, 74],
    draw: () => [
      at(
        262,
        70,
        1.15,
        line("M-4,-13 Q-4,-4 -13,-4 M4,-13 Q4,-4 13,-4 M-4,13 Q-4,4 -13,4 M4,13 Q4,4 13,4", color.RED, 4.6),
        8,
      ),
    ],
  },
  dots: {
    from: [240, 84],
    draw: () => [
      svg("circle", { cx: 250, cy: 80, r: 4.5, fill: color.CLOUD }),
      svg("circle", { cx: 266, cy: 62, r: 7, fill: color.CLOUD }),
      svg("circle", { cx: 290, cy: 38, r: 11, fill: color.CLOUD }),
    ],
  },
  snooze: {
    from: [240, 84],
    draw: () => [
      at(256, 92, 0.7, line(ZED, color.CLOUD, 5)),
      at(274, 66, 1, line(ZED, color.CLOUD, 4.6), 8),
      at(298, 34, 1.35, line(ZED, color.CLOUD, 4.2), 14),
    ],
  },
  gasp: {
    from: [250, 74],
    draw: () => [
      line("M262,82 L270,52", color.RED, 7),
      line("M278,90 L298,66", color.RED, 6),
      line("M58,84 L46,58", color.RED, 6),
    ],
  },
};

const EXTRAS = Object.keys(DRAWN).filter((key): key is Extra => key in DRAWN);

export class Extras {
  readonly element = svg("g");
  readonly #parts: { extra: Extra; from: [number, number]; seen: Changing; grown: Changing }[] = [];

  constructor() {
    for (const extra of EXTRAS) {
      const { from, draw } = DRAWN[extra];
      const group = svg("g", { opacity: 0 }, ...draw());
      this.element.append(group);
      const [seen, grown] = [new Changing(group, "opacity"), new Changing(group, "transform")];
      this.#parts.push({ extra, from, seen, grown });
    }
  }

  /** `float` moves the symbols up and down a little. */
  draw(pose: Pose, float: number): void {
    for (const { extra, from, seen, grown } of this.#parts) {
      const share = Math.max(0, Math.min(1, pose[extra]));
      seen.set(String(Math.round(share * 20) / 20));
      const size = 0.5 + share * 0.5;
      const [x, y] = from;
      grown.set(
        `${path`translate(${x * (1 - size)} ${y * (1 - size) + (share > 0 ? float * 2 : 0)})`} scale(${Math.round(size * 100) / 100})`,
      );
    }
  }
}
