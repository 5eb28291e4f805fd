/**
 * The client in React: a component is drawn anew when what it shows has changed, and not with every delta of its turn.
 *
 * @packageDocumentation
 */

export { useBlock, useHead, useOutline } from "./store.ts";
export { type StreamingOptions, type StreamingToolCalls, useStreamingToolCalls } from "./streaming.ts";
