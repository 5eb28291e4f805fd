/**
 * The client of a Throughline server. Types come from the server's own description of its API, `openapi.json`.
 *
 * @packageDocumentation
 */

export type * from "./api.ts";
export {
  type Answer,
  type CallArguments,
  type CallOptions,
  type Operation,
  type Started,
  type StartOptions,
  Throughline,
  type ThroughlineOptions,
} from "./client.ts";
export { ApiError } from "./error.ts";
export { type Connection, type Ended, Follow, type FollowOptions, SILENCE_MS } from "./follow.ts";
export { EVENT_CHARS_MAX, type SseItem, SseReader } from "./sse.ts";
export * from "./store/index.ts";
