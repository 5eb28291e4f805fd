import { useWords } from "../i18n/use.ts";
import { Link } from "../shared/link.tsx";
import { CALLS } from "./model/filter.ts";
import { useHistoryWords } from "./words.ts";

/** Tabs for turns and calls. */
export function Tabs({ here }: { here: "turns" | "calls" }) {
  const words = useWords();
  const texts = useHistoryWords();
  return (
    <>
      <h1 className="text-[15px] font-semibold">{words.history}</h1>
      <nav aria-label={words.history} className="segments">
        <Link href="/history" aria-current={here === "turns" ? "page" : undefined}>
          {texts.turns}
        </Link>
        <Link href={CALLS} aria-current={here === "calls" ? "page" : undefined}>
          {texts.calls}
        </Link>
      </nav>
    </>
  );
}
