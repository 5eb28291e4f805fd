import { useMemo } from "react";

/** An element that may be asked for the focus before it is there. */
export interface LateFocus {
  /** For its `ref`. */
  attach(this: void, element: HTMLElement | null): void;
  /** Moves the focus to it, at once or when it comes. */
  focus(): void;
}

export function useLateFocus(): LateFocus {
  return useMemo(() => {
    let target: HTMLElement | null = null;
    let isWanted = false;
    return {
      attach: (element) => {
        target = element;
        if (!isWanted || target === null) return;
        isWanted = false;
        target.focus();
      },
      focus: () => {
        isWanted = target === null;
        target?.focus();
      },
    };
  }, []);
}
