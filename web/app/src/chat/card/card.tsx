import type { CallBlock } from "@throughline/client";
import { Check, ChevronRight } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { Elapsed } from "../../shared/call-card/elapsed.tsx";
import { ToolIcon } from "../../shared/call-card/icon.tsx";
import { callTone, nameOf, statusWord } from "../../shared/call-card/tone.ts";
import { duration } from "../../shared/format.ts";
import { later } from "../../ui/later.tsx";
import { useChat, useEntry } from "../context.tsx";
import { CardBody } from "./body.tsx";
import { Summary } from "./summary.tsx";

/** Most replies need no approval. */
const Approval = later(() => import("./approval.tsx"));
const Changes = later(() => import("./changes.tsx"));

/** A tool call: one card for all of its states. */
export function Card({ call, onOpen }: { call: Readonly<CallBlock>; onOpen?: () => void }) {
  const words = useWords();
  const { hold } = useChat();
  const { turnId } = useEntry();
  const id = useId();
  const body = useRef<HTMLDivElement>(null);
  const tone = callTone(call);
  // Without a running turn, as in a past moment of the history, no approval can be answered.
  const asks = call.status === "awaiting_approval" && turnId !== undefined;
  // A card opens by itself when it needs an answer, unless the user has toggled it.
  const [touched, setTouched] = useState<boolean>();
  const isOpen = touched ?? asks;
  const toggle = (): void => {
    hold();
    onOpen?.();
    setTouched(!isOpen);
  };
  useEffect(() => {
    // The browser's search opens the card at the match.
    const found = (): void => setTouched(true);
    const element = body.current;
    element?.addEventListener("beforematch", found);
    return () => element?.removeEventListener("beforematch", found);
  }, []);
  return (
    <>
      <span className="knot" data-look={tone} aria-hidden />
      <div className="card" data-look={tone} data-status={call.status}>
        <h3>
          <button
            type="button"
            className="card-head"
            aria-expanded={isOpen}
            aria-controls={id}
            onClick={toggle}
          >
            <ToolIcon name={nameOf(call)} source={call.source} />
            {call.title && <span className="title">{call.title}</span>}
            <span className="name">{nameOf(call)}</span>
            <Summary call={call} />
            <span className="pill" data-look={tone}>
              {tone === "good" && <Check aria-hidden size={15} />}
              <span className={tone === "good" ? "sr-only" : undefined}>{statusWord(call, words)}</span>
            </span>
            <Time call={call} />
            <ChevronRight aria-hidden size={14} className="chevron" />
          </button>
        </h3>
        {asks && call.approval && <CallApproval call={call} approval={call.approval} isOpen={isOpen} />}
        {call.status === "running" && call.progress?.progress !== undefined && (
          <progress
            aria-hidden
            className="card-progress"
            value={call.progress.progress}
            max={call.progress.total ?? undefined}
          />
        )}
        <div ref={body} id={id} hidden={isOpen ? undefined : untilFound}>
          {isOpen && !asks && <CardBody call={call} />}
          {!isOpen && <p className="sr-only">{call.output}</p>}
        </div>
      </div>
    </>
  );
}

/** The approval of a call of this chat. */
function CallApproval({
  call,
  approval,
  isOpen,
}: {
  call: Readonly<CallBlock>;
  approval: NonNullable<CallBlock["approval"]>;
  isOpen: boolean;
}) {
  const { conversation, openApprovals } = useChat();
  const entry = useEntry();
  return (
    <Approval
      call={call}
      approval={approval}
      isOpen={isOpen}
      openApprovals={openApprovals}
      decide={(answer) => conversation.decide(entry, approval.approval_id, answer)}
      decideAll={() => void conversation.decide(entry, "all", { decision: "approve" }).catch(() => undefined)}
    >
      <Changes call={call} />
    </Approval>
  );
}

/** Hidden, but found by the browser's search, which opens it. React's types lack this value. */
const untilFound = "until-found" as unknown as boolean;

function Time({ call }: { call: Readonly<CallBlock> }) {
  if (call.status === "running" && call.started_at !== undefined) {
    return (
      <span className="time">
        <Elapsed since={call.started_at} />
      </span>
    );
  }
  return (
    <span className="time">{call.duration_ms === undefined ? undefined : duration(call.duration_ms)}</span>
  );
}
