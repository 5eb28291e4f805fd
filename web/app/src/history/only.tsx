import { X } from "lucide-react";
import { useHistoryWords } from "./words.ts";

/** A filter that came with a link, with a button to remove it. */
export function Only({ what, leave }: { what: string; leave(): void }) {
  const texts = useHistoryWords();
  return (
    <button
      type="button"
      className="chip"
      aria-pressed="true"
      aria-label={texts.removeFilter(what)}
      onClick={leave}
    >
      {what}
      <X aria-hidden size={13} />
    </button>
  );
}
