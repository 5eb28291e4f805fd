// Sending what may not be lost: whoever cannot be reached now is asked again, at the end of being offline at once. Framework-free.

import { ApiError, type ConnectionState, wait, waitBefore } from "@throughline/client";

/** Before the second attempt. */
const FIRST_WAIT_MS = 500;
/** A person who waits for their message waits no longer for the next attempt. */
const WAIT_MS_MAX = 5_000;

/** Whether the server was not reached, or cannot do anything now: the same request may go well later. */
export function isUnreached(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof ApiError && [502, 503, 504].includes(error.status));
}

/**
 * What `send` gives once it has arrived. It is called again until then, so it must be safe to be sent twice; what the server refuses is
 * thrown. `onConnection` is told of each wait.
 */
export async function delivered<T>(
  send: () => Promise<T>,
  signal: AbortSignal,
  onConnection?: (connection: ConnectionState) => void,
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await send();
    } catch (error) {
      signal.throwIfAborted();
      if (!isUnreached(error)) throw error;
      const ms = Math.min(waitBefore(failures, FIRST_WAIT_MS), WAIT_MS_MAX);
      onConnection?.({ state: "waiting", failures, ms, error });
      await wait(ms, signal);
      onConnection?.({ state: "connecting" });
    }
  }
}
