import type { CallBlock } from "@throughline/client";
import { ChevronRight } from "lucide-react";
import { lazy, Suspense, useEffect, useId, useRef, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { duration } from "../clock.ts";
import { useChat } from "../context.tsx";
import { CardBody } from "./body.tsx";
import { Elapsed } from "./elapsed.tsx";
import { ToolIcon } from "./icon.tsx";
import { callLook, nameOf, statusWord } from "./look.ts";
import { Summary } from "./summary.tsx";

/** Most replies ask for nothing. */
const Approval = lazy(() => import("./approval.tsx"));

/** A tool call with all that becomes of it: one card, whatever its state. R: T5, U1 */
export function Card({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const { hold } = useChat();
  const id = useId();
  const body = useRef<HTMLDivElement>(null);
  const look = callLook(call);
  const asks = call.status === "awaiting_approval";
  // Whoever has touched it decides; until then it opens by itself when it needs somebody.
  const [touched, setTouched] = useState<boolean>();
  const isOpen = touched ?? asks;
  const toggle = (): void => {
    hold();
    setTouched(!isOpen);
  };
  useEffect(() => {
    // Found by the browser's own search: the card opens at the place.
    const found = (): void => setTouched(true);
    const element = body.current;
    element?.addEventListener("beforematch", found);
    return () => element?.removeEventListener("beforematch", found);
  }, []);
  return (
    <>
      <span className="knot" data-look={look} aria-hidden />
      <div className="card" data-look={look} data-status={call.status}>
        <h3>
          <button
            type="button"
            className="card-head"
            aria-expanded={isOpen}
            aria-controls={id}
            onClick={toggle}
          >
            <ToolIcon name={nameOf(call)} source={call.source} />
            <span className="name">{nameOf(call)}</span>
            <Summary call={call} />
            <span className="pill" data-look={look}>
              {statusWord(call, words)}
            </span>
            <Time call={call} />
            <ChevronRight aria-hidden size={14} className="chevron" />
          </button>
        </h3>
        {asks && call.approval && (
          <Suspense>
            <Approval call={call} approval={call.approval} isOpen={isOpen} />
          </Suspense>
        )}
        <div ref={body} id={id} hidden={isOpen ? undefined : untilFound}>
          {isOpen && !asks && <CardBody call={call} />}
          {!isOpen && <p className="sr-only">{call.output}</p>}
        </div>
      </div>
    </>
  );
}

/** Hidden, but found by the browser's search, which opens it. React's types do not know the word yet. */
const untilFound = "until-found" as unknown as boolean;

function Time({ call }: { call: Readonly<CallBlock> }) {
  if (call.status === "running" && call.started_at !== undefined) {
    return (
      <span className="time">
        <Elapsed since={call.started_at} />
      </span>
    );
  }
  if (call.duration_ms === undefined) return null;
  return <span className="time">{duration(call.duration_ms)}</span>;
}
