import { useCallback, useEffect, useRef, useState } from "react";

/** State of a request: the last value stays until the next one. */
export interface RequestState<T> {
  /** The request function that the value belongs to. */
  to: unknown;
  value: T | undefined;
  error: unknown;
}

/**
 * Sends a request when `ask` changes, and ignores outdated responses. `ask` must be stable (`useCallback`); without it nothing is sent.
 * `waitMs` delays the next request; a new value alone sends nothing.
 */
export function useRequest<T>(
  ask: ((signal: AbortSignal) => Promise<T>) | undefined,
  waitMs = 0,
): RequestState<T> & { again(): void } {
  const [state, setState] = useState<RequestState<T>>({ to: undefined, value: undefined, error: undefined });
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
        (value) => leave.signal.aborted || setState({ to: ask, value, error: undefined }),
        (error: unknown) => leave.signal.aborted || setState(({ value }) => ({ to: ask, value, error })),
      );
    }, wait.current);
    return () => {
      clearTimeout(timer);
      leave.abort();
    };
  }, [ask, attempt]);
  const again = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  return { ...state, again };
}
