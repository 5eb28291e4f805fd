import { useMemo } from "react";

/** Focus of an element that may not be rendered yet. */
export interface LateFocus {
  /** Callback for the element's `ref`. */
  attach(this: void, element: HTMLElement | null): void;
  /** Focuses the element at once, or when it is rendered if the focus has not moved by then. */
  focus(): void;
}

export function useLateFocus(): LateFocus {
  return useMemo(() => {
    let target: HTMLElement | null = null;
    /** Focused element at the time of the request. */
    let from: Element | null = null;
    return {
      attach: (element) => {
        target = element;
        if (target !== null && from !== null && from === document.activeElement) target.focus();
        if (target !== null) from = null;
      },
      focus: () => {
        from = target === null ? document.activeElement : null;
        target?.focus();
      },
    };
  }, []);
}
