// Time, as an avatar sees it. A test brings its own.

export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Calls once, with the time, before the next picture is drawn. The answer takes it back. */
  frame(draw: (now: number) => void): () => void;
  /** Calls once, so much later. The answer takes it back. */
  after(ms: number, act: () => void): () => void;
}

export const browserClock: Clock = {
  now: () => performance.now(),
  frame(draw) {
    const id = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(id);
  },
  after(ms, act) {
    const id = setTimeout(act, ms);
    return () => clearTimeout(id);
  },
};
