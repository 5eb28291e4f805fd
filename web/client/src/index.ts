/**
 * The client of a Throughline server. Types come from the server's own description of its API, `openapi.json`.
 *
 * @packageDocumentation
 */

export type * from "./api.ts";
export {
  type CallArguments,
  type CallOptions,
  newKey,
  type StartedTurn,
  type StartOptions,
  Throughline,
  type ThroughlineOptions,
} from "./client.ts";
export { ApiError } from "./error.ts";
export { type ConnectionState, Follow, type FollowEnd, type FollowOptions, SILENCE_MS } from "./follow.ts";
export type { Operation, OperationInput, OperationResponse } from "./operations.ts";
export type { WebSocketConstructor } from "./sockets.ts";
export { EVENT_CHARS_MAX, type SseItem, SseReader } from "./sse.ts";
export * from "./store/index.ts";
export { wait, waitBefore } from "./waiting.ts";
