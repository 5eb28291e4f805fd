import { type AgentDetail, ApiError, type FieldGroupInfo, type UpstreamInfo } from "@throughline/client";
import { ArrowLeft, Copy, MessageSquare } from "lucide-react";
import { Fragment, useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { answering } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { AGENTS, agentAddress } from "../shared/agents-address.ts";
import { Link } from "../shared/link.tsx";
import { go, guarded } from "../shared/router.ts";
import { definitionsOf, WaysPanel } from "../tester/preview.tsx";
import { Failure } from "../ui/failure.tsx";
import { useFactsLine } from "../ui/model-facts.ts";
import { Panel } from "../ui/panel.tsx";
import { Dialog } from "./dialog.tsx";
import { isConflict, useEditing, usePreview } from "./editing.ts";
import { ExampleCall } from "./example.tsx";
import { ExampleTextBox, NO_TEXT } from "./example-text.tsx";
import { FieldError, Fields, type Form } from "./fields.tsx";
import { FixedFields, FixedPolicy, FixedTextRules } from "./fixed.tsx";
import { numberOf } from "./model/rules.ts";
import { NameDialog } from "./name.tsx";
import { Policy } from "./policy.tsx";
import { partId, SectionIndex } from "./section-index.tsx";
import { TextRules } from "./text-rules.tsx";
import { useTextRuleWords } from "./text-words.ts";
import { isFound, ToolSwitches } from "./tools.tsx";
import { useAgentWords } from "./words.ts";

interface EditorProps {
  agent: AgentDetail;
  parts: readonly FieldGroupInfo[];
  upstreams: readonly UpstreamInfo[];
  /** Reloads the list of agents. */
  refresh(): void;
}

/** One agent: its settings next to their preview. */
export function Editor({ agent, parts, upstreams, refresh }: EditorProps) {
  const words = useAgentWords();
  const client = useClient();
  const fields = useMemo(() => parts.flatMap((part) => part.fields), [parts]);
  const editing = useEditing(client, fields, agent, refresh);
  const { saved, draft, isDirty, isStray, refused, state, save } = editing;
  const isFixed = saved.read_only;
  const [example, setExample] = useState({ tool: "", text: "{}" });
  const [exampleText, setExampleText] = useState(NO_TEXT);
  const textWords = useTextRuleWords();
  const preview = usePreview(client, saved.name, editing.settings, example, exampleText);
  const error = refused ?? (preview.isCurrent ? preview.error : undefined);
  const seen = preview.value;
  const tools = seen?.tools.tools ?? [];
  const model = String(draft.fields.model);
  const upstream = upstreams.find(({ name }) => model.startsWith(`${name}/`));
  const factsLine = useFactsLine();
  const form: Form = {
    draft,
    change: editing.change,
    problem: error instanceof ApiError ? error : undefined,
    models: upstreams.flatMap(({ name, models }) =>
      models.length > 0 ? models.map((model) => (name === model ? name : `${name}/${model}`)) : [`${name}/`],
    ),
    facts: factsLine(upstream?.model_facts[model.slice(upstream.name.length + 1)]),
    remark: upstream?.key === "missing" ? [words.noKey, upstream.key_variable].join(" ") : undefined,
  };

  const [search, setSearch] = useState("");
  const decides = numberOf(example.tool && seen?.call?.rule);
  const foundTools = search.trim() === "" ? [] : tools.filter(({ name }) => isFound(name, search));
  const shownParts = parts.map((part) => ({
    ...part,
    // A section whose title matches is shown whole.
    fields: isFound(part.label, search)
      ? part.fields
      : part.fields.filter(({ label, help, path }) => isFound([label, help, path].join(" "), search)),
  }));
  const sections = shownParts.flatMap(({ name, label, fields }) => {
    const part = {
      name,
      label,
      isShown: fields.length > 0 || (name === "tools" && foundTools.length > 0),
      isWhole: false,
    };
    if (name !== "tools") return [part];
    return [
      part,
      { name: "rules", label: words.rules, isShown: isFound(words.rules, search), isWhole: true },
      {
        name: "text-rules",
        label: textWords.textRules,
        isShown: isFound(textWords.textRules, search),
        isWhole: true,
      },
    ];
  });
  const isShown = (name: string): boolean => sections.some((one) => one.name === name && one.isShown);

  const container = useRef<HTMLDivElement>(null);
  const { leaving, stay, leave } = useLeaving(isDirty && !isFixed);
  const trySave = async (version?: number): Promise<boolean> => {
    if (state === "saving" || isStray) return false;
    return await save(version);
  };
  useEffect(() => {
    // After a refusal, the field with the mistake is scrolled into view once it is rendered.
    if (refused !== undefined)
      container.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [refused]);
  useSaveKey(() => void (isDirty && !isFixed && trySave()));
  // The tools stand above the rules: loaded later, they would move the rules while somebody clicks.
  if (preview.to === undefined) return null;
  // The native tool definitions stand next to the prompt.
  const isText = draft.fields.mode === "text";
  const first = seen?.prompts.find(({ protocol }) =>
    isText ? protocol === draft.fields["tool_call.protocol"] : !protocol,
  );
  return (
    <>
      <div ref={container} className="agent-form">
        <Head agent={saved} refresh={refresh} leave={leave} />
        <SectionIndex
          parts={sections.filter(({ isShown }) => isShown)}
          search={search}
          onSearch={setSearch}
          found={
            search.trim() === ""
              ? undefined
              : shownParts.reduce((sum, { fields }) => sum + fields.length, 0) +
                foundTools.length +
                sections.filter(({ isWhole, isShown }) => isWhole && isShown).length
          }
        />
        {shownParts.map((part) => (
          <Fragment key={part.name}>
            {isShown(part.name) && (
              <div id={partId(part.name)} tabIndex={-1} className="agent-part">
                <Panel title={part.label}>
                  <div className="panel-body">
                    {isFixed ? <FixedFields part={part} form={form} /> : <Fields part={part} form={form} />}
                    {part.name === "tools" && (
                      <ToolSwitches
                        found={seen?.tools}
                        form={form}
                        search={isFound(part.label, search) ? "" : search}
                        isFixed={isFixed}
                      />
                    )}
                  </div>
                </Panel>
              </div>
            )}
            {part.name === "tools" && isShown("rules") && (
              <div id={partId("rules")} tabIndex={-1} className="agent-part">
                <Panel title={words.rules}>
                  <div className="panel-body">
                    <div className="grid min-w-0 gap-3">
                      {isFixed ? (
                        <FixedPolicy form={form} decides={decides} />
                      ) : (
                        <Policy form={form} decides={decides} />
                      )}
                    </div>
                    <ExampleCall tools={tools} example={example} change={setExample} outlook={seen?.call} />
                  </div>
                </Panel>
              </div>
            )}
            {part.name === "tools" && isShown("text-rules") && (
              <div id={partId("text-rules")} tabIndex={-1} className="agent-part">
                <Panel title={textWords.textRules}>
                  <div className="panel-body">
                    <div className="grid min-w-0 gap-3">
                      {isFixed ? (
                        <FixedTextRules form={form} />
                      ) : (
                        <TextRules form={form} seen={exampleText.text === "" ? undefined : seen?.text} />
                      )}
                    </div>
                    <div className="border-t border-line pt-3">
                      <ExampleTextBox example={exampleText} change={setExampleText} seen={seen?.text} />
                    </div>
                  </div>
                </Panel>
              </div>
            )}
          </Fragment>
        ))}
        {!isFixed && (isDirty || state !== "still" || refused !== undefined) && (
          <div className="agent-bar">
            {refused !== undefined && (
              <div className="w-full">
                <Failure error={refused} />
              </div>
            )}
            <span
              role="status"
              className={`mr-auto ${state === "saved" && !isDirty ? "text-ok" : "text-muted"}`}
            >
              {isDirty ? words.unsaved : state === "saved" && words.saved}
            </span>
            {isConflict(refused) && (
              <>
                {refused.status !== 404 && (
                  <button type="button" className="button" onClick={() => void editing.takeTheirs()}>
                    {words.useSaved}
                  </button>
                )}
                <button
                  type="button"
                  className="button"
                  onClick={() => void trySave(Number(refused.content.version) || undefined)}
                >
                  {words.overwrite}
                </button>
              </>
            )}
            {isDirty && !isConflict(refused) && (
              <>
                <button type="button" className="button" onClick={editing.discard}>
                  {words.discard}
                </button>
                <button
                  type="button"
                  className="button primary"
                  disabled={state === "saving" || isStray}
                  onClick={() => void trySave()}
                >
                  {words.save}
                  <kbd aria-hidden>Ctrl S</kbd>
                </button>
              </>
            )}
          </div>
        )}
      </div>
      <div className="agent-preview">
        <WaysPanel
          title={words.preview}
          ways={seen?.prompts ?? []}
          first={first}
          textOf={(way) =>
            way.protocol
              ? way.prompt
              : [way.prompt, definitionsOf(way, tools)]
                  .filter(Boolean)
                  .join(`\n\n— ${words.nativeDefinitions} —\n\n`)
          }
        >
          {preview.error !== undefined && (
            <>
              {preview.error instanceof ApiError ? (
                <FieldError problem={preview.error} />
              ) : (
                <Failure error={preview.error} again={preview.again} />
              )}
              {seen && <p className="text-[12.5px] text-muted">{words.stale}</p>}
            </>
          )}
        </WaysPanel>
      </div>
      {leaving !== undefined && (
        <Dialog title={words.leaveTitle} close={stay}>
          <div className="flex flex-wrap justify-end gap-2">
            <button type="button" className="button" onClick={stay}>
              {words.stay}
            </button>
            <button
              type="button"
              className="button danger"
              onClick={() => {
                // The current address may belong to the deleted agent.
                editing.discard();
                leave(leaving);
              }}
            >
              {words.discard}
            </button>
            <button
              type="button"
              className="button primary"
              disabled={isStray}
              onClick={() => void trySave().then((isSaved) => (isSaved ? leave(leaving) : stay()))}
            >
              {words.save}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** Name of the agent, and the actions on it as a whole. */
function Head({ agent, refresh, leave }: { agent: AgentDetail; refresh(): void; leave(to: string): void }) {
  const words = useAgentWords();
  const common = useWords();
  const client = useClient();
  const [isNaming, setNaming] = useState(false);
  const [asks, setAsks] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const { name, read_only: isFixed } = agent;
  const copy = async (other: string): Promise<void> => {
    await client.call("POST /v1/agents/{agent}/duplicate", { path: { agent: name }, body: { name: other } });
    refresh();
    go(agentAddress(other));
  };
  const remove = async (): Promise<void> => {
    if (!asks) return setAsks(true);
    try {
      await client.call("DELETE /v1/agents/{agent}", { path: { agent: name } });
      if (answering.get() === name) answering.set("");
      refresh();
      leave(AGENTS);
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <div className="grid gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <Link
          href={AGENTS}
          className="icon-button min-[800px]:hidden"
          aria-label={words.all}
          title={words.all}
        >
          <ArrowLeft aria-hidden size={18} />
        </Link>
        <h2 className="mr-auto text-[17px] font-semibold [overflow-wrap:anywhere]">{name}</h2>
        <button
          type="button"
          className="button"
          onClick={() => {
            answering.set(agent.is_default ? "" : name);
            go("/");
          }}
        >
          <MessageSquare aria-hidden size={13} />
          {words.chatWith}
        </button>
        <button
          type="button"
          className={isFixed ? "button primary" : "button"}
          onClick={() => setNaming(true)}
        >
          <Copy aria-hidden size={13} />
          {isFixed ? words.duplicateToEdit : words.duplicate}
        </button>
        {!isFixed && (
          <button
            type="button"
            className="button danger"
            onClick={() => void remove()}
            onBlur={() => setAsks(false)}
          >
            {asks ? common.confirmRemove : common.remove}
          </button>
        )}
      </div>
      {isFixed && <p className="text-[13px] text-muted">{words.readOnly}</p>}
      {agent.fault && (
        <p role="alert" className="rounded-control bg-error-soft px-3 py-2 text-[13px]">
          {agent.fault}
        </p>
      )}
      {failure !== undefined && <Failure error={failure} />}
      {isNaming && (
        <NameDialog title={words.duplicate} first={`${name}-2`} make={copy} close={() => setNaming(false)} />
      )}
    </div>
  );
}

/** Asks for confirmation before unsaved changes are lost. */
function useLeaving(isDirty: boolean) {
  const [leaving, setLeaving] = useState<string>();
  const isFree = useRef(false);
  useEffect(() => {
    if (!isDirty) return undefined;
    const unload = (event: Event): void => event.preventDefault();
    globalThis.addEventListener("beforeunload", unload);
    const free = guarded((to) => {
      if (!isFree.current) setLeaving(to);
      return isFree.current;
    });
    return () => {
      globalThis.removeEventListener("beforeunload", unload);
      free();
    };
  }, [isDirty]);
  return {
    leaving,
    stay: () => setLeaving(undefined),
    leave: (to: string): void => {
      isFree.current = true;
      go(to);
      isFree.current = false;
      setLeaving(undefined);
    },
  };
}

/** Ctrl+S, wherever the focus is. */
function useSaveKey(save: () => void): void {
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    save();
  });
  useEffect(() => {
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
