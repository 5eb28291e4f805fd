import { type RefObject, useEffect, useRef } from "react";

/** Moves the focus when details open or close, so that keyboard users stay in place. */
export function useFocusAfter(open: string | undefined, view: RefObject<HTMLElement | null>): void {
  const before = useRef(open);
  useEffect(() => {
    const closed = open === undefined ? before.current : undefined;
    before.current = open;
    if (open !== undefined) {
      const isListHidden =
        view.current?.querySelector("[data-list]")?.checkVisibility({ visibilityProperty: true }) === false;
      if (isListHidden) view.current?.querySelector<HTMLElement>("[data-detail]")?.focus();
    } else if (closed !== undefined) {
      view.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(closed)}"] a`)?.focus();
    }
  }, [open, view]);
}
