// How often the store notifies its readers: once per frame, and every second frame while frames are late.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { everyFrame, Flusher } from "../src/store/frames.ts";

/** A browser whose frames the test triggers. */
class Screen {
  #now = 0;
  #waiting: FrameRequestCallback[] = [];

  readonly request = (callback: FrameRequestCallback): number => this.#waiting.push(callback);

  /** Draws the next frame, this long after the previous one. */
  frame(ms: number): void {
    this.#now += ms;
    const now = this.#waiting;
    this.#waiting = [];
    for (const callback of now) callback(this.#now);
  }
}

/** For frames at these intervals, with `news` changes before each: the frames in which readers were notified. */
function flushedIn(apart: readonly number[], news = 1): string {
  const screen = new Screen();
  vi.stubGlobal("requestAnimationFrame", screen.request);
  let flushes = 0;
  const flusher = new Flusher(() => flushes++, everyFrame());
  flusher.add(false);
  return apart
    .map((ms) => {
      const before = flushes;
      for (let i = 0; i < news; i++) flusher.add(false);
      screen.frame(ms);
      return flushes > before ? "x" : "-";
    })
    .join("");
}

const times = (count: number, ms: number): number[] => Array<number>(count).fill(ms);

describe("frames", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("all frames are used while they are in time", () => {
    expect(flushedIn(times(8, 16.7))).toBe("xxxxxxxx");
  });

  it("all frames are used after a single late one", () => {
    expect(flushedIn([16.7, 16.7, 40, ...times(5, 16.7)])).toBe("xxxxxxxx");
  });

  it("every second frame is skipped for a second after two late ones", () => {
    expect(flushedIn([16.7, 40, 40, ...times(5, 16.7)])).toBe("xx-x-x-x");
    const after = flushedIn([16.7, 40, 40, ...times(80, 16.7)]);
    expect(after.slice(0, 60)).toBe(`xx${"-x".repeat(29)}`);
    expect(after.slice(-15)).toBe("x".repeat(15));
  });

  it("skipping continues while half of the frames are late", () => {
    const flushes = flushedIn([16.7, ...times(100, 60)]);
    expect(flushes.slice(4)).toBe("-x".repeat(48).concat("-"));
  });

  it("all frames are used for any number of changes", () => {
    expect(flushedIn(times(12, 16.7), 50)).toBe("xxxxxxxxxxxx");
  });

  it("frames with the beginning or end of a block are not skipped", () => {
    const screen = new Screen();
    vi.stubGlobal("requestAnimationFrame", screen.request);
    let flushes = 0;
    const flusher = new Flusher(() => flushes++, everyFrame());
    flusher.add(false);
    // After two late frames every second one is skipped, except for a frame with the beginning or the end of a block.
    const frames = [16.7, 40, 40, 16.7, 16.7, 16.7, 16.7].map((ms, at) => {
      flusher.add(at === 2);
      const before = flushes;
      screen.frame(ms);
      return flushes > before ? "x" : "-";
    });
    expect(frames.join("")).toBe("xxx-x-x");
  });

  it("frame after a pause is not late", () => {
    const screen = new Screen();
    vi.stubGlobal("requestAnimationFrame", screen.request);
    let flushes = 0;
    const flusher = new Flusher(() => flushes++, everyFrame());
    for (let i = 0; i < 5; i++) {
      flusher.add(false);
      expect(flushes, "the first change is flushed at once").toBe(i + 1);
      screen.frame(16.7);
      screen.frame(500);
    }
  });

  it("changes are flushed without frames", () => {
    vi.stubGlobal("requestAnimationFrame", new Screen().request);
    let flushes = 0;
    const flusher = new Flusher(() => flushes++, everyFrame());
    for (let i = 0; i < 4; i++) flusher.add(false);
    vi.advanceTimersByTime(300);
    expect(flushes).toBe(2);
  });
});
