import type { BlockPosition } from "@throughline/client";
import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { ToolIcon } from "../../shared/call-card/icon.tsx";
import { duration } from "../../shared/format.ts";
import { CallBlockView } from "../blocks/block.tsx";
import { useChat, useEntry } from "../context.tsx";
import { summaryOf } from "../model/groups.ts";

/** Consecutive finished calls, collapsed into one line. */
export function Group({ calls }: { calls: readonly BlockPosition[] }) {
  const words = useWords();
  const { hold } = useChat();
  const { store } = useEntry();
  const [isOpen, setOpen] = useState(false);
  const isCues = calls.every(({ tool }) => tool?.startsWith("live2d."));
  const kinds = [...new Set(calls.map(({ tool }) => tool ?? "?"))];
  const title = isCues ? words.cues(calls.length) : words.toolsFinished(calls.length);
  const toggle = (): void => {
    hold();
    setOpen(!isOpen);
  };
  return (
    <>
      <div className="part">
        <span className="knot" data-look="good" aria-hidden />
        <button type="button" className="calls" aria-expanded={isOpen} onClick={toggle}>
          <span className="icons" aria-hidden>
            {kinds.slice(0, 4).map((tool) => (
              <i key={tool}>
                <ToolIcon name={tool} source={undefined} />
              </i>
            ))}
          </span>
          <b className="flex-none font-semibold text-text">{title}</b>
          <span dir="auto" className="min-w-0 flex-1 truncate">
            {summaryOf(calls.map(({ at }) => store.block(at)))}
          </span>
          <span className="flex-none text-[12px] tabular-nums">{duration(wallOf(calls, store))}</span>
          <ChevronRight aria-hidden size={14} className={`flex-none ${isOpen ? "rotate-90" : ""}`} />
        </button>
      </div>
      {isOpen && calls.map(({ at }) => <CallBlockView key={at} at={at} />)}
    </>
  );
}

/** Wall time from the first start to the last end: parallel calls count once. */
function wallOf(calls: readonly BlockPosition[], store: ReturnType<typeof useEntry>["store"]): number {
  let [first, last] = [Number.POSITIVE_INFINITY, 0];
  for (const { at } of calls) {
    const block = store.block(at);
    if (block?.kind !== "tool_call" || block.started_at === undefined) continue;
    first = Math.min(first, block.started_at);
    last = Math.max(last, block.started_at + (block.duration_ms ?? 0));
  }
  return Math.max(0, last - first);
}
