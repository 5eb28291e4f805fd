import { ApiError, type ToolCallResult, type ToolInfo } from "@throughline/client";
import { visible } from "@throughline/visible";
import { Play, Square } from "lucide-react";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Elapsed } from "../shared/call-card/elapsed.tsx";
import { OUTLOOK_TONES } from "../shared/outlook.ts";
import { argumentsOf, type FieldErrors, objectDraft, objectFrom } from "../shared/schema-form/draft.ts";
import { Fields } from "../shared/schema-form/fields.tsx";
import { formOf } from "../shared/schema-form/schema.ts";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import { useOutlook } from "./outlook.ts";
import { Result } from "./result.tsx";
import { useTesterWords } from "./words.ts";

interface RunPanelProps {
  agent: string | undefined;
  /** Tool in the address, which may not exist. */
  name: string | undefined;
  tool: ToolInfo | undefined;
  given: Record<string, unknown> | undefined;
}

export function RunPanel({ agent, name, tool, given }: RunPanelProps) {
  const words = useTesterWords();
  const container = useRef<HTMLDivElement>(null);
  // The form of a selected tool is scrolled into view; on a narrow screen it is far below.
  useEffect(() => {
    if (name !== undefined) container.current?.scrollIntoView?.({ block: "nearest" });
  }, [name]);
  return (
    <div ref={container} className="grid scroll-m-3">
      {tool ? (
        <Runner agent={agent} tool={tool} given={given} />
      ) : (
        <Panel title={words.run}>
          <p className="p-4 text-[13px] text-muted">
            {name === undefined ? words.chooseTool : words.noSuchTool(name)}
          </p>
        </Panel>
      )}
    </div>
  );
}

/** Arguments as fields or JSON, whichever was changed last. */
function useArguments(tool: ToolInfo, given: Record<string, unknown> | undefined) {
  const form = useMemo(() => formOf(tool.parameters), [tool.parameters]);
  const [draft, setDraft] = useState(() => objectDraft(form, given ?? {}));
  const [text, setText] = useState<string>();
  const made = useMemo(() => argumentsOf(form, draft), [form, draft]);
  const value = text === undefined ? (made.errors.size > 0 ? undefined : made.value) : objectFrom(text);
  return {
    form,
    draft,
    setDraft,
    flaws: made.errors,
    text,
    setText,
    /** Arguments to send; `undefined`: invalid. */
    value,
    showJson: () => setText(visible(JSON.stringify(made.value, null, 2))),
    showForm: (): void => {
      if (value === undefined) return;
      setDraft(objectDraft(form, value));
      setText(undefined);
    },
  };
}

type Run =
  | { phase: "idle" }
  | { phase: "running"; since: number; leave: AbortController }
  | { phase: "asks"; why: ApiError; with: Record<string, unknown> }
  | { phase: "done"; result: ToolCallResult }
  | { phase: "stopped" }
  | { phase: "failed"; error: unknown };

/** A manual call. The server decides whether it needs a confirmation. */
function useRun(agent: string | undefined, tool: ToolInfo) {
  const client = useClient();
  const [run, setRun] = useState<Run>({ phase: "idle" });
  const start = async (args: Record<string, unknown>, isAgreed: boolean): Promise<void> => {
    const leave = new AbortController();
    setRun({ phase: "running", since: Date.now(), leave });
    try {
      const result = await client.call("POST /v1/tools/{tool}/call", {
        path: { tool: tool.name },
        body: {
          arguments: args,
          ...(agent === undefined ? {} : { agent }),
          ...(isAgreed ? { confirm: true } : {}),
        },
        signal: leave.signal,
      });
      setRun({ phase: "done", result });
    } catch (error) {
      if (leave.signal.aborted) setRun({ phase: "stopped" });
      else if (error instanceof ApiError && error.code === "confirmation_required")
        setRun({ phase: "asks", why: error, with: args });
      else setRun({ phase: "failed", error });
    }
  };
  return {
    run,
    start: (args: Record<string, unknown>) => void start(args, false),
    agree: () => run.phase === "asks" && void start(run.with, true),
    stop: () => run.phase === "running" && run.leave.abort(),
    dismiss: () => setRun({ phase: "idle" }),
  };
}

function Runner({
  agent,
  tool,
  given,
}: {
  agent: string | undefined;
  tool: ToolInfo;
  given: RunPanelProps["given"];
}) {
  const words = useTesterWords();
  const page = useWords();
  const args = useArguments(tool, given);
  const { run, start, agree, stop, dismiss } = useRun(agent, tool);
  const [isTried, setTried] = useState(false);
  const isHere = tool.runs_on === "here";
  const submit = (): void => {
    setTried(true);
    if (isHere && args.value !== undefined && run.phase !== "running") start(args.value);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <Panel
      title={words.run}
      badge={<span className="pill font-mono [overflow-wrap:anywhere] whitespace-normal">{tool.name}</span>}
      side={
        // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out like this everywhere
        <div role="group" aria-label={words.argumentsAs} className="segments">
          <button
            type="button"
            aria-pressed={args.text === undefined}
            disabled={args.text !== undefined && args.value === undefined}
            onClick={args.showForm}
          >
            {words.form}
          </button>
          <button
            type="button"
            aria-pressed={args.text !== undefined}
            onClick={args.text === undefined ? args.showJson : undefined}
          >
            {words.json}
          </button>
        </div>
      }
    >
      <form
        className="panel-body"
        noValidate
        onKeyDown={onKeyDown}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <p className="text-[13px] text-muted">{tool.description}</p>
        {args.text === undefined ? (
          <Fields
            form={args.form}
            draft={args.draft}
            // Errors are shown after the first attempt.
            errors={isTried ? args.flaws : NOTHING}
            change={args.setDraft}
          />
        ) : (
          <JsonField text={args.text} isGood={args.value !== undefined} change={args.setText} />
        )}
        {isHere ? (
          <div className="flex flex-wrap items-center gap-2">
            {run.phase === "running" ? (
              <button type="button" className="button" onClick={stop}>
                <Square aria-hidden size={12} fill="currentColor" />
                {page.stop}
              </button>
            ) : (
              <button type="submit" className="button primary">
                <Play aria-hidden size={13} />
                {words.runNow}
                <kbd aria-hidden>Ctrl ↵</kbd>
              </button>
            )}
            {run.phase === "running" ? (
              <span className="pill" data-look="running" role="status">
                {page.callStatus.running} <Elapsed since={run.since} />
              </span>
            ) : (
              <OutlookPanel agent={agent} tool={tool} value={args.value} />
            )}
          </div>
        ) : (
          <p className="rounded-control bg-waiting-soft px-3 py-2 text-[13px]">{words.runsInClient}</p>
        )}
        {run.phase === "asks" && <Agree why={run.why} agree={agree} cancel={dismiss} />}
        {run.phase === "failed" && <Failure error={run.error} />}
        {run.phase === "stopped" && (
          <p role="status" className="text-[13px] text-muted">
            {words.stopped}
          </p>
        )}
        {run.phase === "done" && <Result key={run.result.started_at} result={run.result} />}
      </form>
    </Panel>
  );
}

const NOTHING: FieldErrors = new Map();

function JsonField({ text, isGood, change }: { text: string; isGood: boolean; change(text: string): void }) {
  const words = useWords();
  return (
    <div>
      <textarea
        aria-label={words.arguments}
        aria-invalid={!isGood}
        value={text}
        onChange={(event) => change(event.currentTarget.value)}
        rows={Math.min(20, Math.max(6, text.split("\n").length + 1))}
        spellCheck={false}
        className="field resize-y font-mono text-[12.5px]"
      />
      {!isGood && (
        <p role="alert" className="text-[12.5px] text-error">
          {words.notJson}
        </p>
      )}
    </div>
  );
}

/** Outlook of this call if a model made it. */
function OutlookPanel({
  agent,
  tool,
  value,
}: {
  agent: string | undefined;
  tool: ToolInfo;
  value: Record<string, unknown> | undefined;
}) {
  const words = useTesterWords();
  const page = useWords();
  const result = useOutlook(agent, tool, value);
  if (result === undefined) return null;
  const { outlook, why, rule } = result;
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-2 text-[12.5px] text-muted">
      <span className="pill" data-look={OUTLOOK_TONES[outlook]}>
        {words.outlook[outlook]}
      </span>
      <span className="[overflow-wrap:anywhere]">{why ? page.serverText(why) : rule && page.rule(rule)}</span>
    </span>
  );
}

function Agree({ why, agree, cancel }: { why: ApiError; agree(): void; cancel(): void }) {
  const words = useTesterWords();
  const page = useWords();
  const container = useRef<HTMLButtonElement>(null);
  useEffect(() => container.current?.focus(), []);
  const rule = typeof why.content.rule === "string" ? why.content.rule : undefined;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out like this everywhere
    <div
      role="group"
      aria-label={words.asks}
      className="overflow-clip rounded-card border border-waiting-line"
    >
      <div className="question border-t-0">
        <p className="font-semibold">{words.asks}</p>
        {rule && <span className="ml-auto text-[12px] text-muted">{page.rule(rule)}</span>}
      </div>
      <div className="flex gap-2 p-3">
        <button ref={container} type="button" className="button primary" onClick={agree}>
          {words.approveAndRun}
        </button>
        <button type="button" className="button" onClick={cancel}>
          {page.cancel}
        </button>
      </div>
    </div>
  );
}
