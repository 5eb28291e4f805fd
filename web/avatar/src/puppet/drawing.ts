// The drawing of the puppet: built once, then moved by the numbers of a pose.

import * as art from "./art.ts";
import * as color from "./colors.ts";
import { Extras } from "./extras.ts";
import { Eye } from "./eye.ts";
import { Mouth } from "./mouth.ts";
import type { Pose } from "./pose.ts";
import { Changing, gradient, path, svg } from "./svg.ts";

/** Additions of idle movement to a pose. */
export interface Sway {
  /** Openness of the lids. */
  lids: number;
  glance: number;
  breath: number;
  /** Degrees that the tuft and the scarf lag. */
  lag: number;
}

const RAISED_DEGREES = 133;
let count = 0;

export class Drawing {
  readonly element: SVGElement;
  readonly #left: Eye;
  readonly #right: Eye;
  readonly #mouth: Mouth;
  readonly #extras = new Extras();
  readonly #body: Changing;
  readonly #legs: Changing;
  readonly #heads: readonly Changing[];
  readonly #tuft: Changing;
  readonly #scarf: Changing;
  readonly #armLeft: Changing;
  readonly #armRight: Changing;
  readonly #blush: Changing;

  constructor() {
    count += 1;
    const id = (name: string): string => `twine-${count}-${name}`;
    const paint = {
      hair: id("hair"),
      back: id("back"),
      skin: id("skin"),
      knit: id("knit"),
      thread: id("thread"),
      skirt: id("skirt"),
    };
    const iris = id("iris");
    this.#left = new Eye(124, 174, -1, { clip: id("left"), iris });
    this.#right = new Eye(196, 174, 1, { clip: id("right"), iris });
    this.#mouth = new Mouth(160, 212, id("mouth"));
    const blush = svg(
      "g",
      { fill: color.BLUSH },
      svg("ellipse", { cx: 116, cy: 201, rx: 13.5, ry: 8 }),
      svg("ellipse", { cx: 204, cy: 201, rx: 13.5, ry: 8 }),
    );
    const tuft = svg("g", {}, art.tuft(paint));
    const scarf = svg("g", {}, art.scarf(paint));
    const [armLeft, armRight] = [svg("g", {}, art.arm(paint, -1)), svg("g", {}, art.arm(paint, 1))];
    const behind = svg("g", {}, art.backHair(paint));
    const before = svg(
      "g",
      {},
      tuft,
      art.face(paint),
      blush,
      this.#mouth.element,
      this.#left.element,
      this.#right.element,
      art.fringe(paint),
      this.#left.brow,
      this.#right.brow,
      art.button(),
    );
    const legs = svg("g", { "data-part": "legs" }, art.legs());
    const body = svg(
      "g",
      {},
      behind,
      art.skirt(paint),
      art.torso(paint),
      armLeft,
      armRight,
      scarf,
      before,
      this.#extras.element,
    );
    this.element = svg(
      "svg",
      {
        viewBox: "0 -16 320 560",
        overflow: "visible",
        width: "100%",
        height: "100%",
        "aria-hidden": "true",
        focusable: "false",
      },
      svg(
        "defs",
        {},
        gradient(paint.hair, ...color.HAIR),
        gradient(paint.back, ...color.HAIR_BACK),
        gradient(paint.skin, ...color.SKIN),
        gradient(paint.knit, ...color.KNIT),
        gradient(paint.thread, ...color.THREAD),
        gradient(paint.skirt, ...color.SKIRT),
        gradient(iris, ...color.IRIS),
      ),
      art.ground(),
      legs,
      body,
    );
    this.#legs = new Changing(legs, "transform");
    this.#body = new Changing(body, "transform");
    this.#heads = [behind, before].map((head) => new Changing(head, "transform"));
    this.#tuft = new Changing(tuft, "transform");
    this.#scarf = new Changing(scarf, "transform");
    this.#armLeft = new Changing(armLeft, "transform");
    this.#armRight = new Changing(armRight, "transform");
    this.#blush = new Changing(blush, "opacity");
  }

  draw(pose: Pose, sway: Sway): void {
    const { breath, lag } = sway;
    this.#body.set(path`translate(${pose.bodyX} ${pose.bodyY}) rotate(${pose.lean} 160 420)`);
    // Only a jump lifts the feet off the ground.
    this.#legs.set(path`translate(${pose.bodyX * 0.35} ${Math.min(0, pose.bodyY)})`);
    const head = path`translate(${pose.headX} ${pose.headY - breath * 1.2}) rotate(${pose.tilt} 160 232)`;
    for (const part of this.#heads) part.set(head);
    this.#tuft.set(path`rotate(${lag} 164 50)`);
    this.#scarf.set(path`translate(0 ${breath * -0.6 + pose.headY * 0.2}) rotate(${-lag * 0.2} 160 250)`);
    this.#armLeft.set(arm(104, pose.armLeft, pose.handLeft, 1));
    this.#armRight.set(arm(216, pose.armRight, pose.handRight, -1));
    this.#blush.set(String(Math.round(Math.min(1, Math.max(0, pose.blush * 0.55)) * 50) / 50));
    const both = { joy: pose.joy, lookX: pose.lookX + sway.glance, lookY: pose.lookY, pupil: pose.pupil };
    const more = { ...both, stars: pose.starEyes, frown: pose.frown };
    this.#left.draw({ ...more, open: pose.openLeft * sway.lids, brow: pose.browLeft });
    this.#right.draw({ ...more, open: pose.openRight * sway.lids, brow: pose.browRight });
    this.#mouth.draw({
      smile: Math.max(-1, Math.min(1, pose.smile)),
      open: pose.mouthOpen,
      width: pose.mouthWidth,
      round: pose.mouthRound,
      skew: pose.mouthSkew,
    });
    this.#extras.draw(pose, breath);
  }
}

/** Transform of an arm about its shoulder. */
function arm(x: number, raised: number, hand: number, outward: 1 | -1): string {
  return path`translate(${x} 288) rotate(${(4 + raised * (RAISED_DEGREES - 4)) * outward + hand})`;
}
