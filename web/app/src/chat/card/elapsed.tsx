import { useEffect, useRef } from "react";
import { useWords } from "../../i18n/use.ts";
import { duration, everyTick } from "../clock.ts";

/** Time that runs: the shared clock writes it into the page. */
export function Elapsed({ since }: { since: number }) {
  return <Ticking text={(now) => duration(now - since)} key={since} />;
}

/** Time of a wait, in whole seconds. */
export function Waited({ since }: { since: number }) {
  const words = useWords();
  return (
    <Ticking key={since} text={(now) => words.waitedFor(Math.max(1, Math.floor((now - since) / 1_000)))} />
  );
}

/** Time that runs out, in whole seconds. */
export function Remaining({ until }: { until: number }) {
  const words = useWords();
  return (
    <Ticking key={until} text={(now) => words.goesOnIn(Math.max(1, Math.ceil((until - now) / 1_000)))} />
  );
}

function Ticking({ text }: { text(now: number): string }) {
  const place = useRef<HTMLSpanElement>(null);
  const write = useRef(text);
  useEffect(() => {
    write.current = text;
  });
  useEffect(
    () =>
      everyTick((now) => {
        const next = write.current(now);
        if (place.current !== null && place.current.textContent !== next) place.current.textContent = next;
      }),
    [],
  );
  return <span ref={place} aria-hidden />;
}
