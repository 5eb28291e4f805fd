import { useCallback, useEffect, useRef, useState } from "react";

/** What was asked of the server: the last answer stays until the next one is here. */
export interface Answered<T> {
  /** What the answer is to. */
  to: unknown;
  value: T | undefined;
  error: unknown;
}

/**
 * Asks when `ask` changes, and forgets what came too late. `ask` must be stable (`useCallback`); absent, nothing is asked.
 * `waitMs` holds for what is asked next: another wait alone asks nothing.
 */
export function useAsked<T>(
  ask: ((signal: AbortSignal) => Promise<T>) | undefined,
  waitMs = 0,
): Answered<T> & { again(): void } {
  const [answer, setAnswer] = useState<Answered<T>>({ to: undefined, value: undefined, error: undefined });
  const [attempt, setAttempt] = useState(0);
  const wait = useRef(waitMs);
  useEffect(() => {
    wait.current = waitMs;
  }, [waitMs]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt asks the same
  useEffect(() => {
    if (ask === undefined) return undefined;
    const leave = new AbortController();
    const timer = setTimeout(() => {
      ask(leave.signal).then(
        (value) => leave.signal.aborted || setAnswer({ to: ask, value, error: undefined }),
        (error: unknown) => leave.signal.aborted || setAnswer(({ value }) => ({ to: ask, value, error })),
      );
    }, wait.current);
    return () => {
      clearTimeout(timer);
      leave.abort();
    };
  }, [ask, attempt]);
  const again = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  return { ...answer, again };
}
