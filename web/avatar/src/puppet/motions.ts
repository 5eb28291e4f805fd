// Motions of the puppet, each as a pose over time that is added to the expression.

import type { Pose } from "./pose.ts";

export interface Motion {
  /** Milliseconds. */
  readonly lasts: number;
  /** The most expressive moment, 0 to 1: shown if motion is reduced. */
  readonly still: number;
  /** Addition to the pose, at 0 to 1 of the duration. */
  at(t: number): Partial<Pose>;
}

const { PI, sin, cos, abs } = Math;

/** Envelope: up in the first part of the time and down in the last one. */
function hold(t: number, edge = 0.2): number {
  const smooth = (x: number): number => x * x * (3 - 2 * x);
  if (t < edge) return smooth(t / edge);
  if (t > 1 - edge) return smooth((1 - t) / edge);
  return 1;
}

/** `count` swings there and back. */
const swing = (t: number, count: number): number => sin(t * count * 2 * PI);
/** `count` hops. */
const hop = (t: number, count: number): number => abs(sin(t * count * PI));

const GROUPS: Readonly<Record<string, readonly Motion[]>> = {
  Idle: [
    // Looking around.
    {
      lasts: 2_600,
      still: 0.25,
      at: (t) => ({ lookX: swing(t, 1) * 0.8, tilt: swing(t, 1) * 4, headX: swing(t, 1) * 5 }),
    },
    // Humming.
    {
      lasts: 3_000,
      still: 0.12,
      at: (t) => ({ tilt: swing(t, 2) * 6 * hold(t), bodyX: swing(t, 2) * 3, smile: 0.4 * hold(t) }),
    },
  ],
  TapBody: [
    {
      lasts: 900,
      still: 0.3,
      at: (t) => ({
        bodyY: -10 * hop(t, 1),
        headY: -5 * hop(t, 1),
        tilt: swing(t, 2) * 5,
        openLeft: 0.18 * hold(t),
        openRight: 0.18 * hold(t),
        browLeft: -7 * hold(t),
        browRight: -7 * hold(t),
      }),
    },
  ],
  Wave: [
    {
      lasts: 2_000,
      still: 0.4,
      at: (t) => ({
        armRight: hold(t),
        handRight: swing(t, 4) * 20 * hold(t, 0.25),
        tilt: 5 * hold(t),
        smile: 0.4 * hold(t),
      }),
    },
    // Both hands.
    {
      lasts: 2_200,
      still: 0.4,
      at: (t) => ({
        armLeft: hold(t),
        armRight: hold(t),
        handLeft: swing(t, 4) * -18 * hold(t, 0.25),
        handRight: swing(t, 4) * 18 * hold(t, 0.25),
        bodyY: -6 * hop(t, 4),
        smile: 0.4 * hold(t),
      }),
    },
  ],
  Nod: [
    {
      lasts: 1_100,
      still: 0.25,
      at: (t) => ({
        headY: 9 * hop(t, 2),
        lookY: 0.25 * hop(t, 2),
        browLeft: -3 * hold(t),
        browRight: -3 * hold(t),
      }),
    },
  ],
  Shake: [
    {
      lasts: 1_300,
      still: 0.1,
      at: (t) => ({
        headX: swing(t, 2.5) * 11 * hold(t),
        tilt: swing(t, 2.5) * 3 * hold(t),
        lookX: swing(t, 2.5) * 0.4,
      }),
    },
  ],
  // Shrugging.
  Shrug: [
    {
      lasts: 1_500,
      still: 0.4,
      at: (t) => ({
        armLeft: 0.34 * hold(t, 0.3),
        armRight: 0.34 * hold(t, 0.3),
        bodyY: -4 * hold(t, 0.3),
        headY: 5 * hold(t, 0.3),
        tilt: 7 * hold(t, 0.3),
        browLeft: -6 * hold(t, 0.3),
        browRight: -6 * hold(t, 0.3),
        smile: -0.7 * hold(t, 0.3),
      }),
    },
  ],
  Bow: [
    {
      lasts: 1_600,
      still: 0.5,
      at: (t) => ({
        bodyY: 26 * hold(t, 0.35),
        headY: 24 * hold(t, 0.35),
        openLeft: -1.2 * hold(t, 0.35),
        openRight: -1.2 * hold(t, 0.35),
      }),
    },
  ],
  Dance: [
    {
      lasts: 3_600,
      still: 0.06,
      at: (t) => ({
        bodyX: swing(t, 3) * 13 * hold(t, 0.1),
        bodyY: -12 * hop(t, 6) * hold(t, 0.1),
        lean: swing(t, 3) * 5 * hold(t, 0.1),
        tilt: swing(t, 3) * -9 * hold(t, 0.1),
        armLeft: hold(t, 0.1) * (0.5 - 0.5 * cos(t * 6 * PI)),
        armRight: hold(t, 0.1) * (0.5 + 0.5 * cos(t * 6 * PI)),
        handLeft: swing(t, 6) * 10,
        handRight: swing(t, 6) * 10,
        smile: 0.6 * hold(t, 0.1),
        sparkles: hold(t, 0.1),
      }),
    },
  ],
  Jump: [
    {
      lasts: 1_400,
      still: 0.25,
      at: (t) => ({
        bodyY: -24 * hop(t, 2),
        armLeft: hop(t, 2),
        armRight: hop(t, 2),
        smile: 0.5 * hold(t),
        sparkles: hold(t),
      }),
    },
  ],
};

export const MOTIONS: ReadonlyMap<string, readonly Motion[]> = new Map(Object.entries(GROUPS));
