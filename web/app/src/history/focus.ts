import { type RefObject, useEffect, useRef } from "react";

/** Who reads details with the keyboard is not left nowhere when they open over the list, or close. */
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
