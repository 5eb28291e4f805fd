// The avatar that ships: drawn by hand, moved by numbers.

import { browserClock, type Clock } from "../clock.ts";
import { type AvatarDriver, type AvatarInfo, type AvatarSource, type CueResult, OK } from "../driver.ts";
import { Drawing } from "./drawing.ts";
import { EXPRESSIONS } from "./expressions.ts";
import { Life } from "./life.ts";
import { MOTIONS, type Motion } from "./motions.ts";
import { approach, PARTS, type Pose, REST } from "./pose.ts";

export interface PuppetOptions {
  clock?: Clock;
  random?: () => number;
  /** Whether the viewer prefers reduced motion. */
  isReduced?: () => boolean;
}

export const PUPPET: AvatarInfo = {
  name: "Twine",
  expressions: [...EXPRESSIONS.keys()],
  motions: Object.fromEntries([...MOTIONS].map(([group, motions]) => [group, motions.length])),
};

/** A pose is reached by 63 % in a tenth of a second. */
const SPEED = 10;
/** A direction of the eyes is reached by 63 % in a sixth of a second. */
const LOOK_SPEED = 6;
/** While it only breathes, every second frame is enough: none is requested for this time after a frame. */
const CALM_MS = 20;
/** Longer gaps between frames are skipped. */
const LONGEST_STEP_MS = 100;
/** The mouth closes after this time without a level. */
const SILENT_MS = 200;
const STILL = { lids: 1, glance: 0, breath: 0, lag: 0 };

export class Puppet implements AvatarDriver {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #isReduced: () => boolean;
  readonly #life: Life;
  #drawing: Drawing | undefined;
  #face: Readonly<Pose> = REST;
  readonly #pose: Pose = { ...REST };
  #isActive = true;
  #playing: { motion: Motion; since: number } | undefined;
  /** Queue of one motion: a newer request replaces it. */
  #next: Motion | undefined;
  /** Target and current direction of the eyes. */
  #lookX = 0;
  #lookY = 0;
  #gazeX = 0;
  #gazeY = 0;
  #level = 0;
  #spokenAt = Number.NEGATIVE_INFINITY;
  #voice = 0;
  #lag = 0;
  #lagSpeed = 0;
  #drawnAt = 0;
  /** The expression is reached, and nothing swings. */
  #isSettled = false;
  #stopFrame: (() => void) | undefined;
  #stopMotion: (() => void) | undefined;

  constructor({
    clock = browserClock,
    random = Math.random,
    isReduced = prefersStill(),
  }: PuppetOptions = {}) {
    this.#clock = clock;
    this.#random = random;
    this.#isReduced = isReduced;
    this.#life = new Life(random);
  }

  async load(_source: AvatarSource, host: HTMLElement, signal: AbortSignal): Promise<AvatarInfo> {
    signal.throwIfAborted();
    const drawing = new Drawing();
    host.append(drawing.element);
    this.#drawing = drawing;
    signal.addEventListener("abort", () => this.dispose(), { once: true });
    this.#begin();
    return PUPPET;
  }

  expression(name: string): CueResult {
    const face = EXPRESSIONS.get(name);
    if (face === undefined) return { kind: "unknown", known: PUPPET.expressions };
    this.#face = face;
    this.#changed();
    return OK;
  }

  motion(group: string, index?: number): CueResult {
    const motions = MOTIONS.get(group);
    if (motions === undefined) return { kind: "unknown", known: [...MOTIONS.keys()] };
    const motion = motions[index ?? Math.floor(this.#random() * motions.length)];
    if (motion === undefined) return { kind: "unknown", known: motions.map((_, at) => `${group} ${at}`) };
    if (this.#playing === undefined) this.#play(motion);
    else this.#next = motion;
    return OK;
  }

  look(x: number, y: number): void {
    const within = (value: number): number => Math.min(1, Math.max(-1, value));
    this.#lookX = within(x);
    this.#lookY = within(y);
    this.#changed();
    this.#isSettled = false;
  }

  speak(level: number): void {
    this.#level = Math.min(1, Math.max(0, level));
    this.#spokenAt = this.#clock.now();
  }

  setActive(active: boolean): void {
    if (active === this.#isActive) return;
    this.#isActive = active;
    this.#begin();
  }

  dispose(): void {
    this.#stopFrame?.();
    this.#stopMotion?.();
    this.#drawing?.element.remove();
    this.#drawing = undefined;
  }

  /** Motion is reduced: every change is one frame. */
  get #isStill(): boolean {
    return !this.#isActive || this.#isReduced();
  }

  #begin(): void {
    this.#stopFrame?.();
    this.#stopFrame = undefined;
    if (this.#drawing === undefined) return;
    if (this.#isStill) return this.#drawStill();
    const now = this.#clock.now();
    this.#drawnAt = now;
    this.#life.wake(now);
    this.#stopFrame = this.#clock.frame(this.#frame);
  }

  #changed(): void {
    if (this.#isStill) this.#drawStill();
    else if (this.#stopFrame === undefined) this.#begin();
  }

  #play(motion: Motion): void {
    this.#playing = { motion, since: this.#clock.now() };
    this.#stopMotion = this.#clock.after(motion.lasts, () => {
      this.#playing = undefined;
      const next = this.#next;
      this.#next = undefined;
      if (next !== undefined) this.#play(next);
      else this.#changed();
    });
    this.#changed();
  }

  #askForFrame(isCalm: boolean): void {
    const ask = (): void => {
      this.#stopFrame = this.#clock.frame(this.#frame);
    };
    if (isCalm) this.#stopFrame = this.#clock.after(CALM_MS, ask);
    else ask();
  }

  readonly #frame = (now: number): void => {
    // The preference may have changed in between.
    if (this.#isStill) return this.#begin();
    this.#askForFrame(this.#isSettled && !this.#life.isBlinking(now));
    const passed = now - this.#drawnAt;
    this.#drawnAt = now;
    const seconds = Math.min(passed, LONGEST_STEP_MS) / 1_000;
    this.#isSettled = approach(this.#pose, this.#face, seconds, SPEED);
    const share = 1 - Math.exp(-seconds * LOOK_SPEED);
    this.#gazeX += (this.#lookX - this.#gazeX) * share;
    this.#gazeY += (this.#lookY - this.#gazeY) * share;
    const isLooking = Math.abs(this.#lookX - this.#gazeX) + Math.abs(this.#lookY - this.#gazeY) > 0.01;
    const wanted = now - this.#spokenAt > SILENT_MS ? 0 : this.#level;
    // The mouth opens twice as fast as it closes.
    this.#voice += (wanted - this.#voice) * (1 - Math.exp(-seconds * (wanted > this.#voice ? 25 : 14)));
    if (this.#voice < 0.01) this.#voice = 0;
    const pose = this.#posed(now);
    this.#swing(pose, seconds);
    if (this.#playing !== undefined || this.#voice > 0 || isLooking) this.#isSettled = false;
    this.#drawing?.draw(pose, {
      lids: this.#life.lids(now),
      glance: this.#life.glance(now),
      breath: this.#life.breath(now),
      lag: this.#lag,
    });
  };

  #drawStill(): void {
    Object.assign(this.#pose, this.#face);
    this.#voice = 0;
    [this.#gazeX, this.#gazeY] = [this.#lookX, this.#lookY];
    this.#drawing?.draw(this.#posed(undefined), STILL);
  }

  /** The expression with motion and voice added. `undefined`: the most expressive moment of the motion. */
  #posed(now: number | undefined): Pose {
    const pose = { ...this.#pose };
    // The eyes move first, and the head a part of the way.
    pose.lookX += this.#gazeX * 0.85;
    pose.lookY += this.#gazeY * 0.6;
    pose.headX += this.#gazeX * 5;
    pose.headY += this.#gazeY * 3;
    pose.tilt += this.#gazeX * -2;
    if (this.#playing !== undefined) {
      const { motion, since } = this.#playing;
      const t = now === undefined ? motion.still : Math.min(1, Math.max(0, (now - since) / motion.lasts));
      const added = motion.at(t);
      for (const part of PARTS) pose[part] += added[part] ?? 0;
    }
    if (this.#voice > 0) {
      pose.mouthOpen = Math.max(pose.mouthOpen, this.#voice * 0.75);
      pose.mouthWidth += (0.8 - pose.mouthWidth) * this.#voice * 0.5;
    }
    return pose;
  }

  /** The tuft hangs on a spring that the head pulls. */
  #swing(pose: Pose, seconds: number): void {
    const pull = -pose.tilt * 0.9 - pose.headX * 0.8 - pose.bodyX * 0.6;
    this.#lagSpeed += ((pull - this.#lag) * 140 - this.#lagSpeed * 7) * Math.min(seconds, 0.034);
    this.#lag += this.#lagSpeed * Math.min(seconds, 0.034);
    if (Math.abs(this.#lagSpeed) > 0.5) this.#isSettled = false;
  }
}

/** Queried with every frame, so the media query is created once. */
function prefersStill(): () => boolean {
  const query = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)");
  return () => query?.matches ?? false;
}
