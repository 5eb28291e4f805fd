// The mouth: one line, or open with a tongue in it.

import * as color from "./colors.ts";
import { Changing, path, svg } from "./svg.ts";

export interface MouthPose {
  smile: number;
  open: number;
  width: number;
  round: number;
  skew: number;
}

export class Mouth {
  readonly element: SVGElement;
  readonly #outline: Changing;
  readonly #clip: Changing;
  readonly #tongue: Changing;
  readonly #filled: Changing;

  constructor(x: number, y: number, clipId: string) {
    const clip = svg("path");
    const tongue = svg("ellipse", { rx: 11, ry: 8, fill: color.TONGUE });
    const outline = svg("path", {
      stroke: "#7c2f35",
      "stroke-width": 2.8,
      "stroke-linecap": "round",
      "stroke-linejoin": "round",
    });
    this.element = svg(
      "g",
      { transform: `translate(${x} ${y})`, "data-part": "mouth" },
      svg("clipPath", { id: clipId }, clip),
      outline,
      svg("g", { "clip-path": `url(#${clipId})` }, tongue),
    );
    this.#outline = new Changing(outline, "d");
    this.#filled = new Changing(outline, "fill");
    this.#clip = new Changing(clip, "d");
    this.#tongue = new Changing(tongue, "transform");
  }

  draw({ smile, open, width, round, skew }: MouthPose): void {
    const half = 17 * width * (1 - round * open * 0.15);
    const corner = -smile * 4;
    const [left, right] = [corner + skew * 2.5, corner - skew * 3];
    const gap = Math.max(0, open);
    const top = smile * 9 * (1 - gap * 0.75) - round * gap * 13;
    const bottom = smile * 9 * (1 - gap * 0.4) + gap * 38;
    const x = skew * 4;
    const d = path`M${-half + x},${left} Q${x},${top} ${half + x},${right} C${half * 0.92 + x},${bottom * 0.82} ${-half * 0.92 + x},${bottom * 0.82} ${-half + x},${left} Z`;
    const isOpen = gap > 0.05;
    const closed = path`M${-half + x},${left} Q${x},${smile * 11} ${half + x},${right}`;
    this.#outline.set(isOpen ? d : closed);
    this.#filled.set(isOpen ? color.MOUTH : "none");
    this.#clip.set(isOpen ? d : "");
    this.#tongue.set(path`translate(${x} ${bottom * 0.62 + 4 - gap * 2})`);
  }
}
