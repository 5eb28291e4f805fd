// How often the store tells its readers: once a frame, and every second frame while they come late. R: T2, U6

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { everyFrame, Flusher } from "../src/store/frames.ts";

/** A browser's frames, by hand. */
class Screen {
  #now = 0;
  #waiting: FrameRequestCallback[] = [];

  readonly request = (callback: FrameRequestCallback): number => this.#waiting.push(callback);

  /** The next frame, so many milliseconds behind the one before. */
  frame(ms: number): void {
    this.#now += ms;
    const now = this.#waiting;
    this.#waiting = [];
    for (const callback of now) callback(this.#now);
  }
}

/** Of frames that come so far apart, with as many news in front of each: in which something was told. */
function toldIn(apart: readonly number[], news = 1): string {
  const screen = new Screen();
  vi.stubGlobal("requestAnimationFrame", screen.request);
  let told = 0;
  const flusher = new Flusher(() => told++, everyFrame());
  flusher.news(false);
  return apart
    .map((ms) => {
      const before = told;
      for (let i = 0; i < news; i++) flusher.news(false);
      screen.frame(ms);
      return told > before ? "x" : "-";
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

  it("are all used while they come in time", () => {
    expect(toldIn(times(8, 16.7))).toBe("xxxxxxxx");
  });

  it("are all used behind one that was late", () => {
    expect(toldIn([16.7, 16.7, 40, ...times(5, 16.7)])).toBe("xxxxxxxx");
  });

  it("are left out, every second one, for a second behind two that were late, and then used again", () => {
    expect(toldIn([16.7, 40, 40, ...times(5, 16.7)])).toBe("xx-x-x-x");
    const after = toldIn([16.7, 40, 40, ...times(80, 16.7)]);
    expect(after.slice(0, 60)).toBe(`xx${"-x".repeat(29)}`);
    expect(after.slice(-15)).toBe("x".repeat(15));
  });

  it("stay left out while half of them are late, too", () => {
    const told = toldIn([16.7, ...times(100, 60)]);
    expect(told.slice(4)).toBe("-x".repeat(48).concat("-"));
  });

  it("are left out, every second one, while more comes in each than anybody reads", () => {
    expect(toldIn(times(12, 16.7), 5)).toBe("x-x-x-x-x-x-");
    expect(toldIn(times(8, 16.7), 3)).toBe("xxxxxxxx");
  });

  it("are not left out when something begins or ends", () => {
    const screen = new Screen();
    vi.stubGlobal("requestAnimationFrame", screen.request);
    let told = 0;
    const flusher = new Flusher(() => told++, everyFrame());
    const frames = [false, false, false, true, false].map((isUrgent) => {
      for (let i = 0; i < 5; i++) flusher.news(isUrgent);
      const before = told;
      screen.frame(16.7);
      return told > before ? "x" : "-";
    });
    expect(frames.join("")).toBe("x-xx-");
  });

  it("are not late when nothing was to be drawn", () => {
    const screen = new Screen();
    vi.stubGlobal("requestAnimationFrame", screen.request);
    let told = 0;
    const flusher = new Flusher(() => told++, everyFrame());
    for (let i = 0; i < 5; i++) {
      flusher.news(false);
      expect(told, "the first news is told at once").toBe(i + 1);
      screen.frame(16.7);
      screen.frame(500);
    }
  });

  it("that are not drawn at all are not waited for", () => {
    vi.stubGlobal("requestAnimationFrame", new Screen().request);
    let told = 0;
    const flusher = new Flusher(() => told++, everyFrame());
    for (let i = 0; i < 4; i++) flusher.news(false);
    vi.advanceTimersByTime(300);
    expect(told).toBe(2);
  });
});
