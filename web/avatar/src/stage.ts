// State of one avatar for any driver: its expression and mood, and when it returns to neutral.

import { browserClock, type Clock } from "./clock.ts";
import type { AvatarDriver, AvatarInfo, CueResult } from "./driver.ts";
import { Names } from "./names.ts";

/** Time after the end of a turn for which a requested expression stays. */
export const FALL_BACK_MS = 6_000;

/** Activity around the avatar. Its face follows the mood unless an expression was requested. */
export type Mood = "rest" | "thinks" | "watches" | "waits";

/** Expression of each mood, if the avatar has it. */
const FACES: Readonly<Record<Mood, string>> = {
  rest: "neutral",
  thinks: "thinking",
  watches: "neutral",
  waits: "smile",
};

export interface StageState {
  /** Current expression. */
  readonly expression: string;
  /** The expression stays until another one is requested. */
  readonly isPinned: boolean;
  /** Motion is paused. */
  readonly isPaused: boolean;
}

export class AvatarStage {
  readonly info: AvatarInfo;
  readonly #driver: AvatarDriver;
  readonly #clock: Clock;
  readonly #expressions: Names;
  readonly #motions: Names;
  readonly #listeners = new Set<() => void>();
  readonly #neutral: string | undefined;
  #mood: Mood = "rest";
  /** The current expression was requested. */
  #isRequested = false;
  #state: StageState;
  #isSeen = true;
  #isTurnRunning = false;
  #forgetFallBack: (() => void) | undefined;

  constructor(driver: AvatarDriver, info: AvatarInfo, clock: Clock = browserClock) {
    this.info = info;
    this.#driver = driver;
    this.#clock = clock;
    this.#expressions = Names.ofExpressions(info);
    this.#motions = Names.ofMotions(info);
    this.#neutral = this.#expressions.find("neutral") ?? info.expressions[0];
    this.#state = { expression: this.#neutral ?? "", isPinned: false, isPaused: false };
  }

  readonly get = (): StageState => this.#state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get expressions(): readonly string[] {
    return this.info.expressions;
  }

  get motions(): Readonly<Record<string, number>> {
    return this.info.motions;
  }

  /** Requests an expression, which replaces the current one. */
  expression(requested: string): CueResult {
    const shown = this.#show(requested);
    if (shown.kind === "ok") this.#isRequested = true;
    return shown;
  }

  /** Sets the mood; a requested expression stays. */
  mood(mood: Mood): void {
    if (mood === this.#mood) return;
    this.#mood = mood;
    if (this.#isRequested || this.#state.isPinned) return;
    const face = this.#restFace();
    if (face !== undefined && face !== this.#state.expression) this.#show(face);
  }

  /** Looks in a direction, from -1 (left, up) to 1 each way; by default to the viewer. */
  look(x = 0, y = 0): void {
    this.#driver.look?.(x, y);
  }

  /** Expression without a request. */
  #restFace(): string | undefined {
    return this.#expressions.find(FACES[this.#mood]) ?? this.#neutral;
  }

  #show(requested: string): CueResult {
    const name = this.#expressions.find(requested);
    if (name === undefined) return { kind: "unknown", known: this.#expressions.known };
    const shown = this.#driver.expression(name);
    if (shown.kind === "ok") {
      this.#set({ expression: name });
      this.#fallBackLater();
    }
    return shown;
  }

  motion(requested: string, index?: number): CueResult {
    const group = this.#motions.find(requested);
    if (group === undefined) return { kind: "unknown", known: this.#motions.known };
    return this.#driver.motion(group, index);
  }

  speak(level: number): void {
    this.#driver.speak(level);
  }

  turnBegan(): void {
    this.#isTurnRunning = true;
    this.#forgetFallBack?.();
  }

  turnEnded(): void {
    this.#isTurnRunning = false;
    this.#fallBackLater();
  }

  pin(isPinned: boolean): void {
    this.#set({ isPinned });
    this.#fallBackLater();
  }

  pause(isPaused: boolean): void {
    this.#set({ isPaused });
    this.#activate();
  }

  /** Whether the avatar is visible. */
  seen(isSeen: boolean): void {
    this.#isSeen = isSeen;
    this.#activate();
  }

  dispose(): void {
    this.#forgetFallBack?.();
    this.#driver.dispose();
  }

  #activate(): void {
    this.#driver.setActive(this.#isSeen && !this.#state.isPaused);
  }

  #fallBackLater(): void {
    this.#forgetFallBack?.();
    this.#forgetFallBack = undefined;
    const { isPinned, expression } = this.#state;
    const rest = this.#restFace();
    if (isPinned || this.#isTurnRunning || rest === undefined || expression === rest) return;
    this.#forgetFallBack = this.#clock.after(FALL_BACK_MS, () => {
      this.#isRequested = false;
      this.#show(this.#restFace() ?? rest);
    });
  }

  #set(change: Partial<StageState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }
}
