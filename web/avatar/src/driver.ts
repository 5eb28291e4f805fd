// What an avatar is to whoever shows one: the puppet that ships, or later a model of the user's own.

export interface AvatarDriver {
  /** Builds it inside `host`. `signal` ends the loading, and takes away what was built so far. */
  load(source: AvatarSource, host: HTMLElement, signal: AbortSignal): Promise<AvatarInfo>;
  expression(name: string): CueResult;
  /** Without an index: any motion of the group. */
  motion(group: string, index?: number): CueResult;
  /** Turns eyes and head to a place, each from -1 (left, up) to 1; 0 and 0: to whoever looks. */
  look?(x: number, y: number): void;
  /** How far the mouth is open, 0 to 1, as often as there is news of the voice. */
  speak(level: number): void;
  /** `false` stops the frame loop: off the screen, in a hidden tab, or because the user wants it still. */
  setActive(active: boolean): void;
  dispose(): void;
}

/** Where an avatar comes from. */
export type AvatarSource = { kind: "puppet" };

export interface AvatarInfo {
  name: string;
  expressions: readonly string[];
  /** Groups, each with how many motions it has. */
  motions: Readonly<Record<string, number>>;
}

/** Whether a cue was understood; if not, what would have been. */
export type CueResult = { kind: "ok" } | { kind: "unknown"; known: readonly string[] };

export const OK: CueResult = { kind: "ok" };
