import type { Clock } from "../src/clock.ts";

/** Time that goes on only when a test says so. */
export class FakeClock implements Clock {
  #now = 0;
  #frames = new Set<(now: number) => void>();
  readonly #waiting = new Map<object, { at: number; act: () => void }>();
  /** Pictures that were drawn. */
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

  /** Whether somebody wants to draw. */
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
