// Waits before retries.

/** Longest wait before an attempt, unless the server asks for more. */
export const WAIT_MS_MAX = 30_000;

/**
 * The wait before attempt `attempt` (1 = the first one after a failure): at least `leastMs`, doubled with every attempt, plus
 * up to half of it at random, so that clients that lost their connections together do not reconnect together.
 */
export function waitBefore(attempt: number, leastMs: number): number {
  const least = Math.max(leastMs, 1);
  const doubled = Math.max(least, Math.min(least * 2 ** Math.min(attempt - 1, 30), WAIT_MS_MAX));
  return doubled * (1 + Math.random() / 2);
}

/** Waits. Coming back online also ends the wait. Rejects with the signal's reason when it is aborted. */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      globalThis.removeEventListener?.("online", onOnline);
    };
    const onOnline = (): void => {
      stop();
      resolve();
    };
    const onAbort = (): void => {
      stop();
      reject(signal?.reason);
    };
    const timer = setTimeout(onOnline, ms);
    if (signal?.aborted) return onAbort();
    signal?.addEventListener("abort", onAbort);
    globalThis.addEventListener?.("online", onOnline);
  });
}
