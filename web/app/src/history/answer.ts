import { useEffect, useRef, useState } from "react";

/** What the server answers, asked anew with another key. What was there stays until then. */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, key: string) {
  const [state, setState] = useState<{ value?: T; failure?: unknown }>({});
  const latest = useRef(ask);
  useEffect(() => {
    latest.current = ask;
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says what is asked for
  useEffect(() => {
    const leave = new AbortController();
    latest.current(leave.signal).then(
      (value) => leave.signal.aborted || setState({ value }),
      (failure: unknown) => leave.signal.aborted || setState({ failure }),
    );
    return () => leave.abort();
  }, [key]);
  return state;
}
