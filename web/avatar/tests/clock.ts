import type { Clock } from "../src/clock.ts";

/** A clock that only the test advances. */
export class FakeClock implements Clock {
  #now = 0;
  #frames = new Set<(now: number) => void>();
  readonly #waiting = new Map<object, { at: number; act: () => void }>();
  /** Number of frames. */
  drawn = 0;

  now = (): number => this.#now;

  frame = (draw: (now: number) => void): (() => void) => {
    this.#frames.add(draw);
    return () => this.#frames.delete(draw);
  };

  after = (ms: number, act: () => void): (() => void) => {
    const key = {};
    this.#waiting.set(key, { at: this.#now + ms, act });
    return () => this.#waiting.delete(key);
  };

  /** Whether a frame is requested. */
  get isDrawing(): boolean {
    return this.#frames.size > 0;
  }

  pass(ms: number): void {
    const end = this.#now + ms;
    while (this.#now < end) {
      this.#now = Math.min(end, this.#now + 16);
      for (const [key, { at, act }] of [...this.#waiting]) {
        if (at > this.#now) continue;
        this.#waiting.delete(key);
        act();
      }
      const frames = this.#frames;
      this.#frames = new Set();
      for (const draw of frames) {
        this.drawn += 1;
        draw(this.#now);
      }
    }
  }
}
