// Pacing of the store's notifications: the first change at once, later ones once per frame.

/** The changes that a schedule takes into account when it chooses the next flush. */
export interface PendingChanges {
  /** A pending change is more than a piece of an existing block: it is shown with the next frame. */
  readonly isUrgent: boolean;
}

/** Calls back before one of the next frames is drawn. */
export type FlushSchedule = (flush: () => void, pending: PendingChanges) => void;

/** A frame that took longer than this is late. */
const LATE_MS = 24;
/** After two late frames within this time, every second frame is skipped for the same time. */
const EASED_MS = 1_000;
/** A hidden page draws no frames; its readers are notified at this interval instead. */
const HIDDEN_MS = 250;

/** Every frame of the browser, or every second one while frames are late; 16 ms without frames. */
export function everyFrame(): FlushSchedule {
  if (typeof requestAnimationFrame !== "function") return (flush) => void setTimeout(flush, 16);
  const throttle = new FrameThrottle();
  const hidden = new FallbackTimer(HIDDEN_MS);
  let isInFrame = false;
  return (flush, pending) => {
    if (!isInFrame) throttle.reset();
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
      if (!throttle.isTooFast(now) || pending.isUrgent) return draw();
      requestAnimationFrame((next) => {
        throttle.isTooFast(next);
        draw();
      });
    });
  };
}

/** Decides from the times of frames whether every second frame is enough. */
class FrameThrottle {
  #last: number | undefined;
  #lateAt = Number.NEGATIVE_INFINITY;
  #easedUntil = Number.NEGATIVE_INFINITY;

  /** Nothing was drawn for a while, so the next frame is not late. */
  reset(): void {
    this.#last = undefined;
  }

  /** A frame begins. A single late frame proves nothing: it may be a garbage collection or another program. */
  isTooFast(now: number): boolean {
    if (this.#last !== undefined && now - this.#last > LATE_MS) {
      if (now - this.#lateAt < EASED_MS) this.#easedUntil = now + EASED_MS;
      this.#lateAt = now;
    }
    this.#last = now;
    return now < this.#easedUntil;
  }
}

/** Runs callbacks that no frame has run in time. It uses one timer, because a timer per frame costs more than the frame's changes. */
class FallbackTimer {
  readonly #ms: number;
  #waiting: (() => void) | undefined;
  #since = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number) {
    this.#ms = ms;
  }

  /** A callback that runs once: when it is called, or after the time limit. */
  once(act: () => void): () => void {
    const waiting = (): void => {
      if (this.#waiting !== waiting) return;
      this.#waiting = undefined;
      act();
    };
    this.#waiting = waiting;
    this.#since = performance.now();
    this.#timer ??= setTimeout(this.#check, this.#ms);
    return waiting;
  }

  readonly #check = (): void => {
    this.#timer = undefined;
    if (this.#waiting === undefined) return;
    const left = this.#since + this.#ms - performance.now();
    if (left <= 0) return this.#waiting();
    this.#timer = setTimeout(this.#check, left);
  };
}

/** Flushes at most once per frame, and the first time at once. */
export class Flusher implements PendingChanges {
  isUrgent = false;
  readonly #flush: () => void;
  readonly #schedule: FlushSchedule;
  #isScheduled = false;
  #waiting = 0;

  constructor(flush: () => void, schedule: FlushSchedule) {
    this.#flush = flush;
    this.#schedule = schedule;
  }

  /** Adds a change; `isUrgent`: it is more than a piece of an existing block. */
  add(isUrgent: boolean): void {
    this.#waiting += 1;
    this.isUrgent ||= isUrgent;
    if (!this.#isScheduled) this.#flushNow();
  }

  #flushNow(): void {
    this.#waiting = 0;
    this.isUrgent = false;
    this.#isScheduled = true;
    this.#flush();
    this.#schedule(() => {
      this.#isScheduled = false;
      if (this.#waiting > 0) this.#flushNow();
    }, this);
  }
}
