import { useHead, useOutline } from "@throughline/client/react";
import { useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import type { Words } from "../../i18n/words.ts";
import { Elapsed, Remaining, Waited } from "../../shared/call-card/elapsed.tsx";
import { useChat } from "../context.tsx";
import type { ConversationState, Entry } from "../model/entry.ts";
import { type Status, statusOf } from "../model/status.ts";

const UNEASY: ReadonlySet<Status["kind"]> = new Set(["needs_you", "retrying", "reconnecting", "unsent"]);

/** The status line of the running turn. */
export function StatusLine() {
  const { conversation } = useChat();
  const state = useSyncExternalStore(conversation.subscribe, conversation.get);
  // Its height is reserved, so that nothing moves when a turn begins or ends.
  if (state.running === undefined) return <div className="mb-1.5 h-5" />;
  return <OfTurn entry={state.running} state={state} />;
}

function OfTurn({ entry, state }: { entry: Entry; state: ConversationState }) {
  const words = useWords();
  const head = useHead(entry.store);
  const outline = useOutline(entry.store);
  const { connection, isStopping } = state;
  const isTaken = entry.turnId !== undefined;
  const status = statusOf({ isRunning: true, isStopping, isTaken, connection, head, outline });
  const isCalm = !UNEASY.has(status.kind);
  return (
    <p
      data-status={status.kind}
      className="mx-auto mb-1.5 flex h-5 w-full max-w-190 items-center gap-2 px-4 text-[12.5px] text-muted tabular-nums"
    >
      <span aria-hidden className={`size-2 rounded-full ${isCalm ? "pulse bg-thread" : "bg-waiting"}`} />
      {status.kind !== "retrying" && (
        <span className="min-w-13 flex-none">
          {head.started_at > 0 && <Elapsed since={head.started_at} />}
        </span>
      )}
      <span>{statusText(status, words)}</span>
      {"since" in status && status.since !== undefined && <Waited since={status.since} />}
      {"until" in status && status.until !== undefined && <Remaining until={status.until} />}
      {status.kind === "needs_you" && status.count === 1 && <ToQuestion />}
    </p>
  );
}

/** Button to an open approval while the keys are taken by a text field. Several approvals have their own bar. */
function ToQuestion() {
  const words = useWords();
  const { openApprovals } = useChat();
  return (
    <button
      type="button"
      className="ml-auto rounded-control px-2 hover:text-text"
      onClick={() => openApprovals.target()?.show()}
    >
      {words.review} <kbd aria-hidden>F6</kbd>
    </button>
  );
}

function statusText(status: Status, words: Words): string {
  switch (status.kind) {
    case "running":
      return words.statusRunning(status.count);
    case "needs_you":
      return words.statusNeedsYou(status.count);
    case "retrying":
      return words.statusRetry(status.reason);
    default:
      return words.status[status.kind];
  }
}
