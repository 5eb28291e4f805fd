import { useCallback, useEffect, useState } from "react";

/** A source that arrives in pieces. */
export interface Played {
  /** Position of the end. */
  length: number;
  /** Position after one more piece. */
  after(at: number): number;
  /** Pieces per second. */
  perSecond: number;
}

export interface Playing {
  /** Current position; `undefined`: not playing. */
  at: number | undefined;
  isRunning: boolean;
  start(): void;
  pause(): void;
  resume(): void;
  step(): void;
  end(): void;
}

/** Plays a source in pieces. `isReady`: the last piece was processed. */
export function usePlaying({ length, after, perSecond }: Played, isReady: (at: number) => boolean): Playing {
  const [at, setAt] = useState<number>();
  const [isRunning, setRunning] = useState(false);
  const step = useCallback(() => setAt((at) => (at === undefined ? at : after(at))), [after]);
  const isOver = at !== undefined && at >= length;
  const mayContinue = isRunning && at !== undefined && !isOver && isReady(at);
  // biome-ignore lint/correctness/useExhaustiveDependencies: every piece has a wait of its own
  useEffect(() => {
    if (!mayContinue) return undefined;
    const timer = setTimeout(step, 1_000 / perSecond);
    return () => clearTimeout(timer);
  }, [mayContinue, step, perSecond, at]);
  return {
    at,
    isRunning: isRunning && !isOver,
    start: () => {
      setAt(0);
      setRunning(true);
    },
    pause: () => setRunning(false),
    resume: () => {
      if (isOver) setAt(0);
      setRunning(true);
    },
    step: () => {
      setRunning(false);
      step();
    },
    end: () => {
      setAt(undefined);
      setRunning(false);
    },
  };
}
