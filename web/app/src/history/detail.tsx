import {
  ApiError,
  type CallBlock,
  type CallDetail,
  isFinal,
  type ResolveApproval,
} from "@throughline/client";
import { ArrowLeft, X } from "lucide-react";
import { useCallback } from "react";
import { Arguments, CallError } from "../chat/card/body.tsx";
import { isHarmless, RunAgain } from "../chat/card/run-again.tsx";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { Output } from "../shared/call-card/output.tsx";
import { Section } from "../shared/call-card/section.tsx";
import { argumentsOf, callTone, nameOf, statusWord } from "../shared/call-card/tone.ts";
import { duration } from "../shared/format.ts";
import { Link } from "../shared/link.tsx";
import { objectFrom } from "../shared/schema-form/draft.ts";
import { testerAddress } from "../shared/tester-address.ts";
import { CopyButton } from "../ui/copy.tsx";
import { Failure } from "../ui/failure.tsx";
import { later } from "../ui/later.tsx";
import { MediaView } from "../ui/media.tsx";
import { useRequest } from "../ui/use-request.ts";
import { Ids } from "./ids.tsx";
import type { Filter } from "./model/filter.ts";
import { Timeline } from "./timeline.tsx";
import { TurnTime } from "./turn-time.tsx";
import { useHistoryWords } from "./words.ts";

/** Few calls wait for an approval. */
const Approval = later(() => import("../chat/card/approval.tsx"));

interface DetailProps {
  toolId: string;
  status: string | undefined;
  filter: Filter;
  filterBy(filter: Filter): void;
  /** Address without the details. */
  close: string;
}

/** Details of one call. */
export function Detail({ toolId, status, filter, filterBy, close }: DetailProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const client = useClient();
  // biome-ignore lint/correctness/useExhaustiveDependencies: with another status there is more to be known
  const ask = useCallback(
    (signal: AbortSignal) =>
      client.call("GET /v1/history/calls/{tool_id}", { path: { tool_id: toolId }, signal }),
    [client, toolId, status],
  );
  const { value: detail, error, again } = useRequest(ask);
  const decide = async (approvalId: string, body: ResolveApproval): Promise<void> => {
    const path = { turn_id: detail?.turn_id ?? "", approval_id: approvalId };
    await client.call("POST /v1/turns/{turn_id}/approvals/{approval_id}", { path, body });
    again();
  };
  const isMissing = error instanceof ApiError && error.status === 404;
  return (
    <section
      data-detail
      tabIndex={-1}
      aria-label={texts.details}
      className="flex min-h-0 min-w-0 flex-col border-line bg-bg outline-none max-[999px]:absolute max-[999px]:inset-0 min-[1000px]:w-105 min-[1000px]:flex-none min-[1000px]:border-l"
    >
      <header className="flex min-h-13 flex-none items-center gap-2 border-b border-line px-4">
        <Link
          href={close}
          className="icon-button min-[1000px]:hidden"
          aria-label={texts.back}
          title={texts.back}
        >
          <ArrowLeft aria-hidden size={18} />
        </Link>
        <h2 className="min-w-0 flex-1 truncate font-mono text-[13.5px] font-semibold">{detail?.tool_name}</h2>
        {detail && <CopyButton text={() => JSON.stringify(detail, null, 2)} />}
        <Link
          href={close}
          className="icon-button max-[999px]:hidden"
          aria-label={words.close}
          title={words.close}
        >
          <X aria-hidden size={17} />
        </Link>
      </header>
      <div className="min-h-0 flex-1 overflow-auto overscroll-contain">
        {detail && <Known detail={detail} filter={filter} filterBy={filterBy} decide={decide} />}
        {error !== undefined && !isMissing && (
          <div className="p-4">
            <Failure error={error} again={again} />
          </div>
        )}
        {detail === undefined && (error === undefined || isMissing) && (
          <p role="status" className="p-4 text-[13px] text-muted">
            {isMissing ? texts.callNotFound : words.loading}
          </p>
        )}
      </div>
    </section>
  );
}

interface KnownProps {
  detail: CallDetail;
  decide(approvalId: string, answer: ResolveApproval): Promise<void>;
  filter: Filter;
  filterBy(filter: Filter): void;
}

function Known({ detail, filter, filterBy, decide }: KnownProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const call = { kind: "tool_call", ...detail.call } as const;
  const { approval } = call;
  const word = statusWord(call, words);
  const isOver = isFinal(call.status);
  const facts = [
    call.effect && words.effect[call.effect],
    call.rule && words.rule(call.rule),
    call.early === true && words.early,
    call.source !== "builtin" && call.source,
  ].filter(Boolean);
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4 p-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="pill" data-look={callTone(call)}>
          {detail.duration_ms == null ? word : texts.took(word, duration(detail.duration_ms))}
        </span>
        <span className="text-[12px] text-muted">
          {new Date(detail.started_at).toLocaleString(language.get())}
        </span>
        {facts.length > 0 && <span className="text-[12px] text-muted">{facts.join(" · ")}</span>}
      </div>
      {approval ? (
        <div className="card" data-look="waiting">
          <Approval
            key={approval.approval_id}
            meanwhile={<Arguments call={call} />}
            call={call}
            approval={approval}
            isOpen
            decide={(answer) => decide(approval.approval_id, answer)}
          />
        </div>
      ) : (
        <Arguments call={call} />
      )}
      {call.error && <CallError call={call} />}
      {(call.output || call.output_value !== undefined || call.status === "success") && (
        <Output
          text={call.output ?? ""}
          value={call.output_value}
          size={undefined}
          isLive={false}
          toolId={undefined}
        />
      )}
      {call.output_media?.map((media, at) => (
        <MediaView key={at} media={media} />
      ))}
      {isOver && <Again call={call} />}
      <Timeline moments={detail.timeline} />
      {isOver && <SeenByModel seen={detail.seen_by_model} />}
      <TurnTime turnId={detail.turn_id} toolId={detail.tool_id} status={detail.status} />
      <Ids detail={detail} filter={filter} filterBy={filterBy} />
    </div>
  );
}

/** Runs a read-only call again here; others are opened in the tester first. */
function Again({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  if (isHarmless(call)) return <RunAgain call={call} />;
  const args = objectFrom(JSON.stringify(argumentsOf(call) ?? {}));
  return (
    <div>
      <Link href={testerAddress(nameOf(call), args)} className="button">
        {words.tryOther}
      </Link>
    </div>
  );
}

/** Text that the model got instead of the result. */
function SeenByModel({ seen }: { seen: string | null | undefined }) {
  const texts = useHistoryWords();
  return (
    <Section title={texts.seenByModel} side={seen != null && <CopyButton text={() => seen} />}>
      {seen == null ? (
        <p className="text-[12.5px] text-muted">{texts.notSeenByModel}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        <pre className="pre" tabIndex={0}>
          {seen}
        </pre>
      )}
    </Section>
  );
}
