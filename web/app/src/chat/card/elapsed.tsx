import { useEffect, useRef } from "react";
import { duration, everyTick } from "../clock.ts";

/** Time that runs: the shared clock writes it into the page. */
export function Elapsed({ since }: { since: number }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(
    () =>
      everyTick((now) => {
        if (place.current) place.current.textContent = duration(now - since);
      }),
    [since],
  );
  return <span ref={place} aria-hidden />;
}
