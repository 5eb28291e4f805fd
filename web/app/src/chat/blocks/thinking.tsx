import { useHead } from "@throughline/client/react";
import { ChevronRight } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { duration } from "../../shared/format.ts";
import { useChat, useEntry } from "../context.tsx";
import { thinkingMs } from "../model/figures.ts";
import { Markdown } from "./markdown/markdown.tsx";
import { useThinkingWords } from "./thinking-words.ts";

/** A thinking block: the current sentence while it streams; the whole text unfolds. */
export function Thinking({ text, isOpen, at }: { text: string; isOpen: boolean; at: number }) {
  const words = useThinkingWords();
  const { hold } = useChat();
  const id = useId();
  const [isShown, setShown] = useState(false);
  const ms = useThoughtMs(at, isOpen);
  const toggle = (): void => {
    hold();
    setShown(!isShown);
  };
  return (
    <div className="text-[13.5px] text-muted">
      <button
        type="button"
        className="flex w-full min-w-0 items-center gap-1.5 rounded-control py-0.5 text-start hover:text-text disabled:hover:text-muted"
        aria-expanded={isShown}
        aria-controls={id}
        disabled={text === ""}
        onClick={toggle}
      >
        <ChevronRight aria-hidden size={14} className={`flex-none ${isShown ? "rotate-90" : ""}`} />
        <span className={`flex-none ${isOpen ? "shimmer" : ""}`}>
          {isOpen ? words.thinking : words.thought(ms === undefined ? undefined : seconds(ms))}
        </span>
        {isOpen && !isShown && (
          <span dir="auto" aria-hidden className="min-w-0 flex-1 truncate opacity-75">
            {lastSentence(text)}
          </span>
        )}
      </button>
      <div id={id} hidden={!isShown} className="mt-1 border-s-2 border-line ps-3">
        {isShown && <Markdown text={text} isOpen={isOpen} />}
      </div>
    </div>
  );
}

/** Duration of the thinking: measured on this page, or from the figures of the turn. */
function useThoughtMs(at: number, isOpen: boolean): number | undefined {
  const { store } = useEntry();
  const { stats } = useHead(store);
  const since = useRef<number>(undefined);
  const [seen, setSeen] = useState<number>();
  useEffect(() => {
    if (isOpen) since.current ??= performance.now();
    else if (since.current !== undefined) setSeen(performance.now() - since.current);
  }, [isOpen]);
  return seen ?? thinkingMs(stats?.segments ?? [], store.outline(), at);
}

/** Duration in whole seconds. */
function seconds(ms: number): string {
  return duration(Math.max(1_000, Math.round(ms / 1_000) * 1_000)).replace(".0 s", " s");
}

/** The current sentence is searched in this many last characters. */
const SEARCHED_CHARS = 400;

function lastSentence(text: string): string {
  const end = text
    .slice(-SEARCHED_CHARS)
    .replace(/[*_`#>]+/g, "")
    .trimEnd();
  const at = Math.max(
    ...["\n", ". ", "? ", "! ", "。", "？", "！"].map((mark) => end.lastIndexOf(mark, end.length - 2)),
  );
  return end.slice(at + 1).trim();
}
