// A connection to the events of a turn, over any transport.

import type { ViewerEvent } from "./api.ts";

/** First event of a connection. */
export type FollowStart = { after?: number; from?: "snapshot" };

/** A part of what comes over a connection. */
export interface Received {
  events: ViewerEvent[];
  /** The turn has ended, and nothing more comes. */
  isOver?: boolean;
  /** Wait before the next connection, as the server wants it. */
  retryMs?: number;
  /** The error in what followed these events. */
  failure?: { error: unknown };
}

/** One connection, over which the events of a turn come. */
export interface TurnConnection {
  /** The next part, maybe without an event; `undefined`: it was closed. Throws when it breaks. */
  read(): Promise<Received | undefined>;
}

/** Opens a connection, which ends with the signal. `undefined`: the turn has ended, and nothing more comes. */
export type OpenEvents = (
  from: FollowStart,
  signal: AbortSignal,
  silenceMs: number,
) => Promise<TurnConnection | undefined>;

/** Nothing came for so long that the connection counts as lost. */
export class SilenceError extends Error {
  override readonly name = "SilenceError";
  constructor(silenceMs: number) {
    super(`nothing came for ${silenceMs} ms`);
  }
}

/** The event in this text. */
export function viewedOf(data: string): ViewerEvent {
  const viewed: ViewerEvent | null = JSON.parse(data);
  if (typeof viewed?.type !== "string") throw noEvent(data);
  return viewed;
}

/** The error for a text that holds no event. */
export function noEvent(data: string): SyntaxError {
  return new SyntaxError(`no event: ${data.slice(0, 200)}`);
}

/** True if no event of the turn comes after it. */
export function isLast(viewed: ViewerEvent): boolean {
  switch (viewed.type) {
    case "stream_end":
      return true;
    case "snapshot":
    case "resync":
      return viewed.message.status !== undefined;
    default:
      return false;
  }
}
