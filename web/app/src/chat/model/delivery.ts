// Sending with retries: on connection errors it tries again, and at once when the browser is back online. Framework-free.

import { ApiError, type ConnectionState, wait, waitBefore } from "@throughline/client";

/** Wait before the second attempt. */
const FIRST_WAIT_MS = 500;
/** Longest wait between attempts. */
const WAIT_MS_MAX = 5_000;

/** True if the server was not reached or is overloaded: the same request may succeed later. */
export function isUnreached(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof ApiError && [502, 503, 504].includes(error.status));
}

/**
 * Result of `send` once it has succeeded. It is called until then, so it must be safe to repeat; what the server refuses is
 * thrown. `onConnection` is called with each wait.
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
