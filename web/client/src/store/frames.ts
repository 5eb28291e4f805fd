// When the store tells its readers: the first news at once, what follows once per frame. R: T2

/** Calls back before the next frame is drawn. */
export type Schedule = (flush: () => void) => void;

/** A frame that took longer than this is late: then every second one is left out for a while. */
const LATE_MS = 24;
/** For so long. */
const EASED_MS = 1_000;
/** A hidden page draws no frames; what is in the store is still to be told. */
const HIDDEN_MS = 250;

/** Frames of the browser; where there are none, 16 ms. */
export function everyFrame(): Schedule {
  if (typeof requestAnimationFrame !== "function") return (flush) => void setTimeout(flush, 16);
  let last = 0;
  let easedUntil = 0;
  return (flush) => {
    let isDone = false;
    const done = (): void => {
      if (isDone) return;
      isDone = true;
      clearTimeout(timer);
      flush();
    };
    const timer = setTimeout(done, HIDDEN_MS);
    requestAnimationFrame((now) => {
      // Frames that follow each other tell how busy the page is; a pause between them does not.
      const took = now - last;
      if (took > LATE_MS && took < 2 * LATE_MS) easedUntil = now + EASED_MS;
      last = now;
      if (now < easedUntil) requestAnimationFrame(done);
      else done();
    });
  };
}

/** One flush a frame, and the first one at once. */
export class Flusher {
  readonly #flush: () => void;
  readonly #schedule: Schedule;
  #isScheduled = false;
  #hasNews = false;

  constructor(flush: () => void, schedule: Schedule) {
    this.#flush = flush;
    this.#schedule = schedule;
  }

  /** There is something to tell. */
  news(): void {
    this.#hasNews = true;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#tell();
    this.#schedule(() => {
      this.#isScheduled = false;
      if (this.#hasNews) this.news();
    });
  }

  #tell(): void {
    this.#hasNews = false;
    this.#flush();
  }
}
