export type { CallBlock } from "./call.ts";
export { absorb, type Change, emptyMessage, isFinal } from "./fold.ts";
export { everyFrame, type Schedule } from "./frames.ts";
export { type AudioChunk, type Head, type Place, type TurnListener, TurnStore } from "./turn.ts";
