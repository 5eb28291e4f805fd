// Audio that arrived while this page was open may autoplay, once. Audio from a snapshot may not.

import type { TurnListener } from "@throughline/client";

const live = new Set<string>();

/** Listener for the audio of a turn. */
export function soundsOf(turnId: string): TurnListener {
  return { onAudio: (_, block) => live.add(`${turnId}/${block}`) };
}

/** True once for a block with new audio. */
export function takeLive(turnId: string, block: number): boolean {
  return live.delete(`${turnId}/${block}`);
}
