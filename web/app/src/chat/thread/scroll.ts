// Keeps the end of the thread in view while text comes, unless the reader has scrolled away. Framework-free.

/** Distance from the end that counts as the end. */
const NEAR_PX = 48;
/** Pixels per line of a wheel event in lines, as Firefox sends them for a mouse. */
const LINE_PX = 20;
/** Time for which the scroll position is kept after something was opened. */
const HELD_MS = 200;

export class StickToEnd {
  #isStuck = true;
  #isResting = false;
  #heldUntil = 0;
  #lastTop = 0;
  readonly #scroller: HTMLElement;
  readonly #onChange: (isStuck: boolean) => void;
  readonly #stop: () => void;

  constructor(scroller: HTMLElement, content: HTMLElement, onChange: (isStuck: boolean) => void) {
    this.#scroller = scroller;
    this.#onChange = onChange;
    const observer = new ResizeObserver(() => this.#grown());
    observer.observe(content);
    observer.observe(scroller);
    const scrolled = (): void => this.#scrolled();
    scroller.addEventListener("scroll", scrolled, { passive: true });
    this.#stop = () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", scrolled);
    };
  }

  /** Keeps the scroll position while something opens. */
  hold(): void {
    this.#heldUntil = performance.now() + HELD_MS;
  }

  /** An empty conversation is not scrolled to its end. */
  rest(isResting: boolean): void {
    this.#isResting = isResting;
    if (isResting) this.#scroller.scrollTop = 0;
  }

  /** Scrolls to the end, and stays there. */
  toEnd(): void {
    this.#heldUntil = 0;
    this.#stick(true);
    this.#write();
  }

  /** Forwards wheel events around the thread to it, unless their target scrolls itself. */
  turn(event: Pick<WheelEvent, "target" | "currentTarget" | "ctrlKey" | "deltaMode" | "deltaY">): void {
    // Ctrl with the wheel zooms.
    if (event.ctrlKey || scrollsItself(event.target, event.currentTarget)) return;
    const unit = [1, LINE_PX, this.#scroller.clientHeight][event.deltaMode] ?? 1;
    this.#scroller.scrollTop += event.deltaY * unit;
  }

  stop(): void {
    this.#stop();
  }

  #grown(): void {
    if (!this.#isStuck) return;
    if (performance.now() < this.#heldUntil) return this.#stick(this.#isNear());
    // Layout is done and nothing is painted yet: scrolling now costs no second layout.
    this.#write();
  }

  #write(): void {
    if (!this.#isResting) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #scrolled(): void {
    const { scrollTop } = this.#scroller;
    const isUp = scrollTop < this.#lastTop - 1;
    this.#lastTop = scrollTop;
    // Growing text never scrolls up; only a reader does.
    if (this.#isNear()) this.#stick(true);
    else if (isUp) this.#stick(false);
  }

  #isNear(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    return scrollHeight - clientHeight - scrollTop < NEAR_PX;
  }

  #stick(isStuck: boolean): void {
    if (isStuck === this.#isStuck) return;
    this.#isStuck = isStuck;
    this.#onChange(isStuck);
  }
}

/** True if something between `target` and `within` scrolls by itself. */
function scrollsItself(target: EventTarget | null, within: EventTarget | null): boolean {
  for (let at = target; at !== within; at = at.parentElement) {
    if (!(at instanceof Element) || at instanceof HTMLDialogElement) return true;
    const isFull = at.scrollHeight > at.clientHeight;
    if (isFull && ["auto", "scroll"].includes(getComputedStyle(at).overflowY)) return true;
  }
  return false;
}
