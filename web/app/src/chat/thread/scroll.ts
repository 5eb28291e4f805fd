// The end of the thread stays in view while text comes, unless the reader has gone elsewhere. Framework-free.

/** Nearer to the end than this is at the end. */
const NEAR_PX = 48;
/** A wheel that counts in lines, as Firefox does it with a mouse, turns by so much a line. */
const LINE_PX = 20;
/** For so long nothing moves after something was opened. */
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

  /** Something is opened: what is being read stays where it is. */
  hold(): void {
    this.#heldUntil = performance.now() + HELD_MS;
  }

  /** While nothing was said yet there is no end to follow: what stands there is read from its beginning. */
  rest(isResting: boolean): void {
    this.#isResting = isResting;
    if (isResting) this.#scroller.scrollTop = 0;
  }

  /** To the end, and stay there. */
  toEnd(): void {
    this.#heldUntil = 0;
    this.#stick(true);
    this.#write();
  }

  /** The wheel over what lies around the thread, a field or a button, turns the thread, unless it scrolls itself. */
  turn(event: Pick<WheelEvent, "target" | "currentTarget" | "ctrlKey" | "deltaMode" | "deltaY">): void {
    // With Ctrl it is the zoom.
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
    // The page has just been laid out, and nothing was drawn yet: this is in the same frame, and lays nothing out a second time.
    this.#write();
  }

  #write(): void {
    if (!this.#isResting) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #scrolled(): void {
    const { scrollTop } = this.#scroller;
    const isUp = scrollTop < this.#lastTop - 1;
    this.#lastTop = scrollTop;
    // Text that grows moves nothing up; only a reader does.
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

/** Whether the wheel over `target` belongs to something there, so far out as `within`, or to what is not in it at all. */
function scrollsItself(target: EventTarget | null, within: EventTarget | null): boolean {
  for (let at = target; at !== within; at = at.parentElement) {
    if (!(at instanceof Element) || at instanceof HTMLDialogElement) return true;
    const isFull = at.scrollHeight > at.clientHeight;
    if (isFull && ["auto", "scroll"].includes(getComputedStyle(at).overflowY)) return true;
  }
  return false;
}
