import { useMemo } from "react";

/** An element that may be asked for the focus before it is there. */
export interface LateFocus {
  /** For its `ref`. */
  attach(this: void, element: HTMLElement | null): void;
  /** Moves the focus to it, at once, or when it comes if the focus has not moved on by then. */
  focus(): void;
}

export function useLateFocus(): LateFocus {
  return useMemo(() => {
    let target: HTMLElement | null = null;
    /** Where the focus was when it was asked for. */
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
