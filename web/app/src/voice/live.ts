// Sounds that came while this page was there: they may be heard by themselves, once. What a snapshot brings is none of them.

import type { TurnListener } from "@throughline/client";

const live = new Set<string>();

/** Is told what a turn brings as it comes. */
export function soundsOf(turnId: string): TurnListener {
  return { onAudio: (_, block) => live.add(`${turnId}/${block}`) };
}

/** Whether this block's sound is new; from now on it is not. */
export function takeLive(turnId: string, block: number): boolean {
  return live.delete(`${turnId}/${block}`);
}
