import { useCallback, useEffect, useState } from "react";
import { afterPiece } from "./model/passages.ts";

/** How a text is played. */
export interface Pace {
  /** Characters of a piece. */
  piece: number;
  /** Pieces in a second. */
  perSecond: number;
}

export interface Playing {
  /** How much has arrived; `undefined`: it is not played. */
  at: number | undefined;
  isRunning: boolean;
  start(): void;
  pause(): void;
  goOn(): void;
  step(): void;
  end(): void;
}

/** A text that arrives in pieces. `isReady`: the last piece has been read, the next one may come. */
export function usePlaying(text: string, pace: Pace, isReady: (at: number) => boolean): Playing {
  const [at, setAt] = useState<number>();
  const [isRunning, setRunning] = useState(false);
  const { piece, perSecond } = pace;
  const step = useCallback(
    () => setAt((at) => (at === undefined ? at : afterPiece(text, at, piece))),
    [text, piece],
  );
  const isOver = at !== undefined && at >= text.length;
  const mayGoOn = isRunning && at !== undefined && !isOver && isReady(at);
  // biome-ignore lint/correctness/useExhaustiveDependencies: every piece has a wait of its own
  useEffect(() => {
    if (!mayGoOn) return undefined;
    const timer = setTimeout(step, 1_000 / perSecond);
    return () => clearTimeout(timer);
  }, [mayGoOn, step, perSecond, at]);
  return {
    at,
    isRunning: isRunning && !isOver,
    start: () => {
      setAt(0);
      setRunning(true);
    },
    pause: () => setRunning(false),
    goOn: () => {
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
