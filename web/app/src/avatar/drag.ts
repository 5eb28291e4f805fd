import { type PointerEvent as ElementPointerEvent, useEffect, useMemo, useRef } from "react";

/** A finger is never quite still: less than this, in pixels, is a tap. */
const TAP_PX = 6;

/** Lets an element follow the pointer. `move`: position in the window, from 0 (left, top) to 1. */
export function useDrag(move: (x: number, y: number) => void) {
  const latest = useRef(move);
  latest.current = move;
  const drag = useMemo(() => {
    let isMoved = false;
    let held = new AbortController();
    const onPointerDown = (down: ElementPointerEvent<HTMLElement>): void => {
      if (!down.isPrimary || down.button !== 0) return;
      const { currentTarget: element, pointerId, clientX, clientY } = down;
      const { left, top } = element.getBoundingClientRect();
      held.abort();
      held = new AbortController();
      const { signal } = held;
      isMoved = false;
      const onMove = (event: PointerEvent): void => {
        if (event.pointerId !== pointerId) return;
        const [dx, dy] = [event.clientX - clientX, event.clientY - clientY];
        if (!isMoved && Math.hypot(dx, dy) < TAP_PX) return;
        isMoved = true;
        const x = share(left + dx, innerWidth - element.offsetWidth);
        const y = share(top + dy, innerHeight - element.offsetHeight);
        latest.current(x, y);
      };
      // A fast pointer leaves the element before it has followed; capturing the pointer would swallow the click of a tap.
      addEventListener("pointermove", onMove, { signal });
      addEventListener("pointerup", leave, { signal });
      addEventListener("pointercancel", leave, { signal });
    };
    const leave = (): void => held.abort();
    /** True if the next click ends a drag. */
    const wasMoved = (): boolean => {
      const was = isMoved;
      isMoved = false;
      return was;
    };
    return { onPointerDown, wasMoved, leave };
  }, []);
  useEffect(() => drag.leave, [drag]);
  return drag;
}

function share(at: number, whole: number): number {
  return whole <= 0 ? 0 : Math.min(1, Math.max(0, at / whole));
}
