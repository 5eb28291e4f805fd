// Time source of an avatar, replaced in tests.

export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Calls once before the next frame, with the time. Returns a function that cancels it. */
  frame(draw: (now: number) => void): () => void;
  /** Calls once after a delay. Returns a function that cancels it. */
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
