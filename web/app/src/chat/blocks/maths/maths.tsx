import { type ReactNode, useEffect, useSyncExternalStore } from "react";
import { Variable } from "../../../store.ts";

type Library = typeof import("./mathml.ts");

const library = new Variable<Library | undefined>(undefined);
let loading: Promise<void> | undefined;

/** Loads the library with the first formula; until then, and if that fails, a formula is shown as its source. */
function fetchLibrary(): void {
  if (loading !== undefined) return;
  loading = import("./mathml.ts").then(library.set).catch(() => {
    loading = undefined;
  });
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
  const found = useSyncExternalStore(library.subscribe, library.get);
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
