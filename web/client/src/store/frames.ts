// When the store tells its readers: the first news at once, what follows once per frame. R: T2

/** What is known of the news when the next time is chosen. */
export interface News {
  /** So many have just been told. */
  readonly told: number;
  /** Among those that wait is one that is more than a piece of what is there: it is shown with the next frame. */
  readonly isUrgent: boolean;
}

/** Calls back before the next frame is drawn, or one of the next. */
export type Schedule = (flush: () => void, news: News) => void;

/** More news than these in each frame are faster than anybody reads: every second frame shows them as well, for half the work. */
const DENSE = 3;
/** A frame that took longer than this is late. */
const LATE_MS = 24;
/** Two late frames within so long, and every second one is left out for as long. */
const EASED_MS = 1_000;
/** A hidden page draws no frames; what is in the store is still to be told. */
const HIDDEN_MS = 250;

/** Frames of the browser, every second one of them while there is much to show or they come late; where there are none, 16 ms. */
export function everyFrame(): Schedule {
  if (typeof requestAnimationFrame !== "function") return (flush) => void setTimeout(flush, 16);
  const pace = new Pace();
  const hidden = new Patience(HIDDEN_MS);
  let isInFrame = false;
  return (flush, news) => {
    pace.told(news.told);
    if (!isInFrame) pace.rested();
    const done = hidden.once(flush);
    const draw = (): void => {
      isInFrame = true;
      try {
        done();
      } finally {
        isInFrame = false;
      }
    };
    requestAnimationFrame((now) => {
      if (!pace.isTooFast(now) || news.isUrgent) return draw();
      requestAnimationFrame((next) => {
        pace.isTooFast(next);
        draw();
      });
    });
  };
}

/** Whether every second frame is enough: from what is told, and from the times of frames that follow each other. */
class Pace {
  #frames = 0;
  #isDense = false;
  #last: number | undefined;
  #lateAt = Number.NEGATIVE_INFINITY;
  #easedUntil = Number.NEGATIVE_INFINITY;

  /** So many news since the last time. */
  told(news: number): void {
    this.#isDense = news > DENSE * this.#frames && this.#frames > 0;
    this.#frames = 0;
  }

  /** Nothing was to be drawn for a while, which is no frame that comes late. */
  rested(): void {
    this.#last = undefined;
  }

  /** A frame begins. One late frame may be anybody's fault: a collection, another program. */
  isTooFast(now: number): boolean {
    if (this.#last !== undefined && now - this.#last > LATE_MS) {
      if (now - this.#lateAt < EASED_MS) this.#easedUntil = now + EASED_MS;
      this.#lateAt = now;
    }
    this.#last = now;
    this.#frames += 1;
    return this.#isDense || now < this.#easedUntil;
  }
}

/** Calls what was not called in time, by one timer that is seldom set: one of its own for each frame costs more than the frame's news. */
class Patience {
  readonly #ms: number;
  #waiting: (() => void) | undefined;
  #since = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number) {
    this.#ms = ms;
  }

  /** This, to be called in time, and only once. */
  once(act: () => void): () => void {
    const waiting = (): void => {
      if (this.#waiting !== waiting) return;
      this.#waiting = undefined;
      act();
    };
    this.#waiting = waiting;
    this.#since = performance.now();
    this.#timer ??= setTimeout(this.#look, this.#ms);
    return waiting;
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    if (this.#waiting === undefined) return;
    const left = this.#since + this.#ms - performance.now();
    if (left <= 0) return this.#waiting();
    this.#timer = setTimeout(this.#look, left);
  };
}

/** One flush a frame, and the first one at once. */
export class Flusher implements News {
  told = 0;
  isUrgent = false;
  readonly #flush: () => void;
  readonly #schedule: Schedule;
  #isScheduled = false;
  #waiting = 0;

  constructor(flush: () => void, schedule: Schedule) {
    this.#flush = flush;
    this.#schedule = schedule;
  }

  /** There is something to tell; `isUrgent`: it is more than a piece of what is there already. */
  news(isUrgent: boolean): void {
    this.#waiting += 1;
    this.isUrgent ||= isUrgent;
    if (!this.#isScheduled) this.#tell();
  }

  #tell(): void {
    this.told = this.#waiting;
    this.#waiting = 0;
    this.isUrgent = false;
    this.#isScheduled = true;
    this.#flush();
    this.#schedule(() => {
      this.#isScheduled = false;
      if (this.#waiting > 0) this.#tell();
    }, this);
  }
}
