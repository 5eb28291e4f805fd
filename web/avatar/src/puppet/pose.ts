// A pose of the puppet, as numbers. Expressions and motions are poses; poses can be mixed.

/** The pose at rest. Most values are 0. */
export const REST = {
  /** Openness of each eye: 0 closed, 1 open, more is wide. Left and right as seen by the viewer. */
  openLeft: 1,
  openRight: 1,
  /** Curvature of a closed eye: 0 asleep, 1 laughing. */
  joy: 0,
  /** Direction of the eyes, -1 to 1. */
  lookX: 0,
  lookY: 0,
  pupil: 1,
  /** Height of each brow; up is negative. */
  browLeft: 0,
  browRight: 0,
  /** Inner ends of the brows: down is angry (1), up is sad (-1). */
  frown: 0,
  /** Corners of the mouth: 1 up, -1 down. */
  smile: 0.35,
  mouthOpen: 0,
  mouthWidth: 1,
  /** Roundness of an open mouth; 1 is an O. */
  mouthRound: 0,
  /** Sideways shift of the mouth. */
  mouthSkew: 0,
  blush: 0.35,
  /** Rotation of the head in degrees to the right. */
  tilt: 0,
  headX: 0,
  headY: 0,
  /** The whole body: degrees, sideways, up is negative. */
  lean: 0,
  bodyX: 0,
  bodyY: 0,
  /** Each arm: 0 hangs, 1 is raised; degrees of the hand about that. */
  armLeft: 0,
  armRight: 0,
  handLeft: 0,
  handRight: 0,
  /** Symbols next to the face, each 0 to 1. */
  tear: 0,
  sweat: 0,
  hearts: 0,
  sparkles: 0,
  anger: 0,
  dots: 0,
  snooze: 0,
  gasp: 0,
  starEyes: 0,
};

export type Pose = typeof REST;
export type Part = keyof Pose;

export const PARTS = Object.keys(REST).filter((key): key is Part => key in REST);

/** Moves toward another pose, most of the way in `1 / speed` seconds; returns whether it has arrived. */
export function approach(pose: Pose, goal: Pose, seconds: number, speed: number): boolean {
  const share = 1 - Math.exp(-seconds * speed);
  let hasArrived = true;
  for (const part of PARTS) {
    const way = goal[part] - pose[part];
    if (Math.abs(way) < 0.002) pose[part] = goal[part];
    else {
      pose[part] += way * share;
      hasArrived = false;
    }
  }
  return hasArrived;
}
