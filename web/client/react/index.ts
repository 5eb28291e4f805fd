/**
 * React bindings: a component renders again only when its own part of the turn changes, not with every delta.
 *
 * @packageDocumentation
 */

export { useBlock, useHead, useOutline } from "./store.ts";
export { type StreamingOptions, type StreamingToolCalls, useStreamingToolCalls } from "./streaming.ts";
