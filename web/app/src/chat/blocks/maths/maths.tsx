import { type ReactNode, useEffect, useSyncExternalStore } from "react";

type Library = typeof import("./mathml.ts");

let library: Library | undefined;
let loading: Promise<void> | undefined;
const listeners = new Set<() => void>();

/** Loads the library with the first formula; until then, and if that fails, a formula is shown as its source. */
function fetchLibrary(): void {
  if (loading !== undefined) return;
  loading = import("./mathml.ts")
    .then((found) => {
      library = found;
      for (const listener of listeners) listener();
    })
    .catch(() => {
      loading = undefined;
    });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

interface MathsProps {
  /** TeX without delimiters. */
  tex: string;
  /** Source with delimiters, for copying. */
  raw: string;
  isDisplay: boolean;
  /** Without its end delimiter a formula is shown as source. */
  isClosed: boolean;
}

export function Maths({ tex, raw, isDisplay, isClosed }: MathsProps): ReactNode {
  const found = useSyncExternalStore(subscribe, () => library);
  useEffect(fetchLibrary, []);
  const className = `maths ${isDisplay ? "maths-display" : ""}`;
  if (!isClosed || found === undefined)
    return (
      <span className={`${className} maths-source`} dir="ltr">
        {raw.trim()}
      </span>
    );
  const drawn = found.mathOf(tex, isDisplay);
  if ("error" in drawn)
    return (
      <code className={`${className} maths-wrong`} title={drawn.error} dir="ltr">
        {raw.trim()}
      </code>
    );
  return (
    <span className={className} data-tex={raw.trim()} dir="ltr">
      {drawn.element}
    </span>
  );
}
