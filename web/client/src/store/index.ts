export type { CallBlock } from "./call.ts";
export { absorb, type BlockChange, emptyMessage, isFinal } from "./fold.ts";
export { everyFrame, type FlushSchedule } from "./frames.ts";
export {
  type AudioChunk,
  type BlockPosition,
  type MessageHead,
  type TurnListener,
  TurnStore,
} from "./turn.ts";
