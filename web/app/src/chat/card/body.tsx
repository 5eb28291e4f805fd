import { type CallBlock, isFinal } from "@throughline/client";
import { isLarge, PartialJson, pretty } from "@throughline/json";
import { Play, Square, StepForward } from "lucide-react";
import { useMemo, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { language } from "../../preferences.ts";
import { Output } from "../../shared/call-card/output.tsx";
import { Section } from "../../shared/call-card/section.tsx";
import { argumentsOf, nameOf, progressOf } from "../../shared/call-card/tone.ts";
import { useShown, Value, Views } from "../../shared/call-card/value.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { later } from "../../ui/later.tsx";
import { MediaView } from "../../ui/media.tsx";
import { useChat, useEntry } from "../context.tsx";

/** Calls are rarely run again: loaded with the first opened card. */
const RunAgain = later(async () => ({ default: (await import("./run-again.tsx")).RunAgain }));

/** Content of an open card. */
export function CardBody({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  return (
    <div className="card-body">
      <Arguments call={call} />
      {call.progress && <Progress progress={call.progress} />}
      {call.error && <CallError call={call} />}
      {(call.output || call.output_value !== undefined || call.status === "success") && (
        <Output
          text={call.output ?? ""}
          value={call.output_value}
          size={call.output_size}
          isLive={call.status === "running"}
          toolId={call.tool_id}
        />
      )}
      {call.output_media?.map((media, at) => (
        <MediaView key={at} media={media} />
      ))}
      <Facts call={call} />
      {call.seen_by_model === false && isFinal(call.status) && (
        <p className="text-[12.5px] text-muted">{words.notSeenByModel}</p>
      )}
      <Actions call={call} />
    </div>
  );
}

/** Arguments of a call. */
export function Arguments({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const value = argumentsOf(call);
  const [partial] = useState(() => new PartialJson());
  const title = call.ran_with === undefined ? words.arguments : words.argumentsRan;
  if (value === undefined) {
    const text = call.raw ?? call.input_text ?? "";
    if (text === "") return null;
    const readable = partial.read(text).state === "broken" ? text : partial.pretty;
    return (
      <Section title={title} side={<CopyButton text={() => text} />}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
        <pre className={`pre ${call.status === "preparing" ? "caret" : ""}`} tabIndex={0}>
          {readable}
        </pre>
      </Section>
    );
  }
  if (!isEmpty(value)) return <WholeArguments title={title} value={value} />;
  return (
    <Section title={title}>
      <p className="text-[12.5px] text-muted">{words.noArguments}</p>
    </Section>
  );
}

/** Small arguments are shown as text, large ones in the viewer of outputs. */
function WholeArguments({ title, value }: { title: string; value: unknown }) {
  const { shape, view, choose } = useShown(value);
  const isOfManyParts = useMemo(() => isLarge(shape), [shape]);
  const shown = isOfManyParts ? view : "raw";
  return (
    <Section
      title={title}
      side={
        <>
          {isOfManyParts && <Views shape={shape} view={view} choose={choose} />}
          <CopyButton text={() => pretty(value)} />
        </>
      }
    >
      <Value shape={shape} view={shown} isLive={false} />
    </Section>
  );
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function Progress({ progress }: { progress: NonNullable<CallBlock["progress"]> }) {
  const words = useWords();
  return (
    <div className="flex items-center gap-3 text-[12.5px] text-muted tabular-nums">
      {progress.progress !== undefined && (
        <progress
          aria-label={words.callStatus.running}
          className="bar"
          value={progress.progress}
          max={progress.total ?? undefined}
        />
      )}
      <span dir="auto">{progressOf(progress)}</span>
    </div>
  );
}

/** Error of a call. */
export function CallError({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const error = call.error;
  if (error === undefined) return null;
  const ended = words.outcomeText(error);
  const lines = [error.message, call.problem, error.limit].flatMap((line) =>
    line ? words.serverText(line) : [],
  );
  const text = [...new Set(lines)].join("\n");
  // A denial or a stop has a reason, and is not an error.
  if (call.status === "denied" || call.status === "cancelled") {
    if (text === "") return null;
    return (
      <Section title={words.reason} side={<CopyButton text={() => text} />}>
        <p className="rounded-control bg-sunken px-3 py-2 text-[13px] whitespace-pre-wrap">{text}</p>
      </Section>
    );
  }
  return (
    <Section title={words.errorSection} side={<CopyButton text={() => `${error.code}\n${text}`} />}>
      <div className="rounded-control bg-error-soft px-3 py-2 text-[13px]">
        <code className="font-semibold text-error">{ended}</code>
        {text && <p className="mt-1 whitespace-pre-wrap">{text}</p>}
        {error.closest && error.closest.length > 0 && (
          <p className="mt-1">{words.closest(error.closest.join(", "))}</p>
        )}
      </div>
    </Section>
  );
}

function Facts({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const isCue = nameOf(call).startsWith("live2d.");
  const facts = [
    // A tool that does not exist has no effect to show.
    call.effect && call.error?.code !== "unknown_tool" && words.effect[call.effect],
    call.early === true && words.early,
    call.rule && words.rule(call.rule),
    isCue &&
      call.started_at !== undefined &&
      words.firedAt(new Date(call.started_at).toLocaleTimeString(language.get())),
    call.applied === true && words.applied,
    call.applied === false && words.notApplied,
    call.source && call.source !== "builtin" && call.source,
  ].filter((fact) => typeof fact === "string" && fact !== "");
  if (facts.length === 0) return null;
  return <p className="text-[12px] text-muted">{facts.join(" · ")}</p>;
}

function Actions({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const { conversation, avatar } = useChat();
  const entry = useEntry();
  const toolId = call.tool_id;
  if (isFinal(call.status)) {
    if (!nameOf(call).startsWith("live2d."))
      return (
        <>
          <RunAgain call={call} />
          <RetryCall call={call} />
        </>
      );
    if (argumentsOf(call) === undefined) return null;
    return (
      <div>
        <button type="button" className="button" title={words.replayHint} onClick={() => avatar.replay(call)}>
          <Play aria-hidden size={13} />
          {words.replay}
        </button>
      </div>
    );
  }
  // A call that is only displayed, and runs nowhere, cannot be stopped.
  if (toolId === undefined || entry.turnId === undefined || call.status === "preparing") return null;
  return (
    <div>
      <button type="button" className="button" onClick={() => void conversation.cancelCall(entry, toolId)}>
        <Square aria-hidden size={12} fill="currentColor" />
        {words.cancelCall}
      </button>
    </div>
  );
}

/** Runs the call again in a new turn, so that the model sees the result. */
function RetryCall({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const { conversation } = useChat();
  const entry = useEntry();
  const toolId = call.tool_id;
  if (toolId === undefined || entry.turnId === undefined || argumentsOf(call) === undefined) return null;
  if (call.error?.code === "unknown_tool") return null;
  const retry = () =>
    // An error is shown below the thread, like that of any turn that does not start.
    void conversation.retryCall(entry, toolId, words.retryPrompt(nameOf(call))).catch(() => undefined);
  return (
    <div>
      <button type="button" className="button" title={words.retryCallHint} onClick={retry}>
        <StepForward aria-hidden size={13} />
        {words.retryCall}
      </button>
    </div>
  );
}
