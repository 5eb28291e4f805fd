// Interface of an avatar: the puppet that ships, or later a custom model.

export interface AvatarDriver {
  /** Builds the avatar inside `host`. `signal` cancels loading, and removes what was built so far. */
  load(source: AvatarSource, host: HTMLElement, signal: AbortSignal): Promise<AvatarInfo>;
  expression(name: string): CueResult;
  /** Plays a motion of the group; without an index, any of them. */
  motion(group: string, index?: number): CueResult;
  /** Turns eyes and head in a direction, each from -1 (left, up) to 1; 0 and 0: to the viewer. */
  look?(x: number, y: number): void;
  /** Opens the mouth from 0 to 1, called whenever the loudness of the voice changes. */
  speak(level: number): void;
  /** `false` stops the frame loop: off the screen, in a hidden tab, or paused by the user. */
  setActive(active: boolean): void;
  dispose(): void;
}

/** Origin of an avatar. */
export type AvatarSource = { kind: "puppet" };

export interface AvatarInfo {
  name: string;
  expressions: readonly string[];
  /** Groups of motions, each with its size. */
  motions: Readonly<Record<string, number>>;
}

/** Result of a cue: whether the name was understood; if not, the known names. */
export type CueResult = { kind: "ok" } | { kind: "unknown"; known: readonly string[] };

export const OK: CueResult = { kind: "ok" };
