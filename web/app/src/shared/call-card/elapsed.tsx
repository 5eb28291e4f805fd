import { useEffect, useRef } from "react";
import { useWords } from "../../i18n/use.ts";
import { everyTick } from "../clock.ts";
import { duration } from "../format.ts";

/** Elapsed time, updated by the shared clock. */
export function Elapsed({ since }: { since: number }) {
  return <Ticking text={(now) => duration(now - since)} key={since} />;
}

/** Elapsed time in whole seconds. */
export function Waited({ since }: { since: number }) {
  const words = useWords();
  return (
    <Ticking key={since} text={(now) => words.waitedFor(Math.max(1, Math.floor((now - since) / 1_000)))} />
  );
}

/** Remaining time in whole seconds. */
export function Remaining({ until }: { until: number }) {
  const words = useWords();
  return (
    <Ticking key={until} text={(now) => words.goesOnIn(Math.max(1, Math.ceil((until - now) / 1_000)))} />
  );
}

function Ticking({ text }: { text(now: number): string }) {
  const element = useRef<HTMLSpanElement>(null);
  const write = useRef(text);
  useEffect(() => {
    write.current = text;
  });
  useEffect(
    () =>
      everyTick((now) => {
        const next = write.current(now);
        if (element.current !== null && element.current.textContent !== next)
          element.current.textContent = next;
      }),
    [],
  );
  return <span ref={element} aria-hidden />;
}
