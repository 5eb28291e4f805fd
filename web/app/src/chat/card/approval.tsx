import type { CallBlock, RememberFor, ResolveApproval } from "@throughline/client";
import { isLarge, pretty, shapeOf, textOf } from "@throughline/json";
import { exact, spellGlue } from "@throughline/visible";
import { ChevronDown } from "lucide-react";
import {
  type FormEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { useWords } from "../../i18n/use.ts";
import { approvalToolName, argumentsOf, nameOf } from "../../shared/call-card/tone.ts";
import { failed } from "../../ui/failed.ts";
import { later } from "../../ui/later.tsx";
import { OpenApprovals } from "../model/open-approvals.ts";
import { type Lasting, useApprovalWords } from "./approval-words.ts";

/** Elicitations are rare: their form is loaded with the first one. */
const Elicitation = later(() => import("./elicitation.tsx"));
/** Edited arguments are rare: their form is loaded with the first edit. */
const ArgumentsForm = later(() => import("./arguments-form.tsx"));

type Question = NonNullable<CallBlock["approval"]>;
const LASTING: readonly Lasting[] = ["turn", "conversation", "always"];
/** For a single approval, which gets all keys. */
const ALONE = new OpenApprovals();

export interface ApprovalProps {
  call: Readonly<CallBlock>;
  approval: Question;
  isOpen: boolean;
  /** Sends the decision to the server. Throws what the server refuses. */
  decide(answer: ResolveApproval): Promise<void>;
  /** Approves all open calls. */
  decideAll?: () => void;
  /** Decides which of several approvals gets the keys. */
  openApprovals?: OpenApprovals;
  /** Further content above the buttons. */
  children?: ReactNode;
}

/** An approval or an elicitation. It does not need a chat, so other views can show it, too. */
export default function Approval(props: ApprovalProps) {
  const { call, approval, isOpen, openApprovals = ALONE, children } = props;
  const words = useWords();
  const container = useRef<HTMLDivElement>(null);
  const decision = useDecision(props);
  const isCall = approval.kind !== "elicitation";
  const actions = useRef({ approve: () => {}, deny: () => {}, choose: () => {}, chooseDenial: () => {} });
  useEffect(() => {
    actions.current = {
      approve: () => decision.send({ decision: "approve" }),
      deny: () => decision.deny("once"),
      choose: decision.choose,
      chooseDenial: () => decision.deny("lasting"),
    };
  });
  useEffect(() => {
    const show = (): void => {
      container.current?.scrollIntoView({ block: "center" });
      container.current?.querySelector<HTMLElement>("button, input, textarea")?.focus();
    };
    return openApprovals.add({
      id: approval.approval_id,
      // An elicitation needs more than a key press.
      approve: () => (isCall ? actions.current.approve() : show()),
      deny: () => actions.current.deny(),
      choose: () => (isCall ? actions.current.choose() : show()),
      chooseDenial: () => (isCall ? actions.current.chooseDenial() : show()),
      show,
      isVisible: () => isOnScreen(container.current),
    });
  }, [openApprovals, approval.approval_id, isCall]);
  const id = useId();
  const [tool, label] = [nameOf(call), approvalToolName(call, words)];
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out like this everywhere
    <div ref={container} role="group" aria-labelledby={id}>
      <div className="question">
        <p id={id} className="font-semibold">
          {isCall ? words.wantsTo(label) : words.asksTool(label)}
        </p>
        {call.effect && !approval.rule.startsWith("effect:") && (
          <span className="text-[12px] text-muted">{words.effect[call.effect]}</span>
        )}
        {approval.rule && <span className="ms-auto text-[12px] text-muted">{words.rule(approval.rule)}</span>}
      </div>
      {isOpen && isCall && (
        <Arguments call={call} decision={decision}>
          {children}
        </Arguments>
      )}
      {isCall ? (
        <Buttons {...props} openApprovals={openApprovals} decision={decision} tool={tool} />
      ) : (
        <Elicitation approval={approval} isBusy={decision.isSending !== undefined} send={decision.send} />
      )}
      {decision.denial && <Denial decision={decision} denial={decision.denial} tool={tool} />}
      {decision.failure && (
        <p role="alert" className="px-3 pb-3 text-[13px] whitespace-pre-wrap text-error">
          {decision.failure}
        </p>
      )}
    </div>
  );
}

function isOnScreen(element: Element | null): boolean {
  if (element === null) return false;
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

/** Arguments while they are edited. */
type Draft = { kind: "fields"; value: Record<string, unknown> | undefined } | { kind: "text"; text: string };

/** Form of a denial: of this call, or with lasting choices. */
type DenialForm = "once" | "lasting";

interface Decision {
  isSending: "approve" | "deny" | undefined;
  denial: DenialForm | undefined;
  /** The lasting choices are shown. */
  isChoosing: boolean;
  failure: string | undefined;
  /** The arguments are edited as JSON. */
  isRaw: boolean;
  /** Edited arguments; `undefined`: unchanged. */
  draft: Draft | undefined;
  setRaw(isRaw: boolean): void;
  setDraft(draft: Draft | undefined): void;
  choose(): void;
  /** Asks for the reason of a denial; `undefined`: cancels it. */
  deny(denial: DenialForm | undefined): void;
  send(answer: ResolveApproval): void;
}

function useDecision({ call, approval, decide }: ApprovalProps): Decision {
  const words = useWords();
  const texts = useApprovalWords();
  const [isSending, setSending] = useState<"approve" | "deny">();
  const [denial, setDenial] = useState<DenialForm>();
  const [isChoosing, setChoosing] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [isRaw, setRaw] = useState(false);
  const [draft, setDraft] = useState<Draft>();
  const send = async (answer: ResolveApproval): Promise<void> => {
    if (isSending !== undefined) return;
    const full: ResolveApproval = { ...answer };
    if (answer.decision === "approve" && draft !== undefined) {
      const edited = draft.kind === "fields" ? draft.value : objectOf(draft.text);
      if (edited === undefined) return setFailure(draft.kind === "fields" ? texts.notYet : words.notJson);
      if (JSON.stringify(edited) !== JSON.stringify(argumentsOf(call))) full.arguments = edited;
    }
    if (approval.arguments_hash !== undefined) full.arguments_hash = approval.arguments_hash;
    setSending(answer.decision);
    setFailure(undefined);
    try {
      await decide(full);
      setDenial(undefined);
    } catch (error) {
      // The card keeps the state of the server.
      setSending(undefined);
      setFailure(error);
    }
  };
  return {
    isSending,
    denial,
    isChoosing,
    failure: failure === undefined ? failure : failed(failure, words),
    isRaw,
    draft,
    setRaw,
    setDraft,
    choose: () => {
      setChoosing(!isChoosing);
      setDenial(undefined);
    },
    deny: (form) => {
      setDenial(form);
      setChoosing(false);
    },
    send: (answer) => void send(answer),
  };
}

/** Edited text with invisible characters as escapes, which are parsed back. */
function editable(value: unknown): string {
  return exact(pretty(value ?? {}));
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return membersOf(value);
  } catch {
    return undefined;
  }
}

function membersOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function Arguments({
  call,
  decision,
  children,
}: {
  call: Readonly<CallBlock>;
  decision: Decision;
  children: ReactNode;
}) {
  const { isRaw, draft, setDraft } = decision;
  const value = argumentsOf(call);
  const members = membersOf(value);
  const isText = isRaw || members === undefined || isLarge(shapeOf(value));
  return (
    <div className="px-3 pt-3">
      {draft === undefined ? (
        <>
          {isText ? <Json value={value} /> : <FieldList members={members} />}
          {children}
        </>
      ) : (
        <Edited call={call} draft={draft} setDraft={setDraft} />
      )}
    </div>
  );
}

function Json({ value }: { value: unknown }) {
  const words = useWords();
  const text = spellGlue(pretty(value ?? {}));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <pre className="pre" tabIndex={0}>
      {text === "{}" ? words.noArguments : text}
    </pre>
  );
}

/** Arguments as a list of fields. */
function FieldList({ members }: { members: Readonly<Record<string, unknown>> }) {
  const words = useWords();
  const entries = Object.entries(members);
  if (entries.length === 0) return <p className="text-[13px] text-muted">{words.noArguments}</p>;
  return (
    <dl className="asked-fields">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <bdi>{spellGlue(name)}</bdi>
          </dt>
          <dd dir="auto">{spellGlue(textOf(value))}</dd>
        </div>
      ))}
    </dl>
  );
}

function Edited({
  call,
  draft,
  setDraft,
}: {
  call: Readonly<CallBlock>;
  draft: Draft;
  setDraft(draft: Draft): void;
}) {
  const words = useWords();
  const [before] = useState(argumentsOf(call));
  const start = draft.kind === "fields" ? (draft.value ?? membersOf(before)) : objectOf(draft.text);
  const text = draft.kind === "text" ? draft.text : editable(draft.value ?? before);
  const json = (
    <textarea
      dir="auto"
      aria-label={words.arguments}
      value={text}
      onChange={(event) => setDraft({ kind: "text", text: event.currentTarget.value })}
      rows={Math.min(16, text.split("\n").length + 1)}
      spellCheck={false}
      className="pre w-full resize-y border border-line-strong font-mono text-[12.5px]"
    />
  );
  if (draft.kind === "text" || start === undefined) return json;
  return (
    <ArgumentsForm
      tool={nameOf(call)}
      value={start}
      change={(value) => setDraft({ kind: "fields", value })}
      none={() => setDraft({ kind: "text", text })}
    />
  );
}

interface ButtonsProps extends ApprovalProps {
  openApprovals: OpenApprovals;
  decision: Decision;
  tool: string;
}

function Buttons({ call, approval, isOpen, decideAll, openApprovals, decision, tool }: ButtonsProps) {
  const words = useWords();
  const texts = useApprovalWords();
  const choices = useId();
  const pending = useSyncExternalStore(openApprovals.subscribe, openApprovals.get);
  const isMine = openApprovals.target()?.id === approval.approval_id;
  const { isSending, denial, isChoosing, isRaw, draft, setRaw, setDraft, send } = decision;
  const isBusy = isSending !== undefined;
  const value = argumentsOf(call);
  const members = membersOf(value);
  const toggle = (): void => {
    setRaw(!isRaw);
    if (draft === undefined) return;
    // Typed text is kept when switching between fields and JSON, as far as it can be parsed.
    const typed = draft.kind === "fields" ? draft.value : objectOf(draft.text);
    setDraft(
      isRaw ? { kind: "fields", value: typed ?? members } : { kind: "text", text: editable(typed ?? value) },
    );
  };
  const edit = (): void => {
    if (draft !== undefined) return setDraft(undefined);
    setDraft(
      isRaw || members === undefined || isLarge(shapeOf(members))
        ? { kind: "text", text: editable(value) }
        : { kind: "fields", value: members },
    );
  };
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 p-3">
        <span className="split">
          <button
            type="button"
            className="button primary"
            disabled={isBusy}
            onClick={() => send({ decision: "approve" })}
          >
            {isSending === "approve"
              ? words.approving
              : draft === undefined
                ? words.approve
                : words.approveEdited}
            {isMine && <kbd aria-hidden>A</kbd>}
          </button>
          <button
            type="button"
            className="button primary"
            disabled={isBusy}
            aria-expanded={isChoosing}
            aria-controls={choices}
            aria-label={texts.forHowLong}
            title={texts.forHowLong}
            onClick={decision.choose}
          >
            <ChevronDown aria-hidden size={15} />
          </button>
        </span>
        {pending.length > 1 && decideAll && (
          <button type="button" className="button" disabled={isBusy} onClick={decideAll}>
            {words.approveAll(pending.length)}
          </button>
        )}
        <span className="split">
          <button
            type="button"
            className="button danger"
            disabled={isBusy}
            onClick={() => decision.deny("once")}
          >
            {isSending === "deny" ? words.denying : words.deny}
            {isMine && <kbd aria-hidden>D</kbd>}
          </button>
          <button
            type="button"
            className="button danger"
            disabled={isBusy}
            aria-expanded={denial === "lasting"}
            aria-label={texts.moreDenials}
            title={texts.moreDenials}
            onClick={() => decision.deny(denial === "lasting" ? undefined : "lasting")}
          >
            <ChevronDown aria-hidden size={15} />
          </button>
        </span>
        <button
          type="button"
          className="button quiet"
          disabled={isBusy}
          aria-pressed={draft !== undefined}
          onClick={edit}
        >
          {draft === undefined ? words.editArguments : words.cancel}
        </button>
        {isOpen && members !== undefined && Object.keys(members).length > 0 && (
          <button type="button" className="button quiet ms-auto" aria-pressed={isRaw} onClick={toggle}>
            {texts.raw}
          </button>
        )}
      </div>
      <div id={choices} hidden={!isChoosing}>
        {isChoosing && <Choices call={call} tool={tool} isBusy={isBusy} send={send} />}
      </div>
    </>
  );
}

/** Choices that hold for later calls, too. */
function Choices({
  call,
  tool,
  isBusy,
  send,
}: {
  call: Readonly<CallBlock>;
  tool: string;
  isBusy: boolean;
  send(answer: ResolveApproval): void;
}) {
  const texts = useApprovalWords();
  const [onlyThese, setOnlyThese] = useState(false);
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => container.current?.querySelector("button")?.focus(), []);
  const { effect } = call;
  return (
    <div ref={container} className="lasting">
      <Scopes
        names={texts.lasting}
        isBusy={isBusy}
        onlyThese={onlyThese}
        setOnlyThese={setOnlyThese}
        choose={(remember) => send({ decision: "approve", remember })}
      />
      {(effect === "write" || effect === "external") && <p>{texts.always(tool, effect, onlyThese)}</p>}
    </div>
  );
}

interface ScopesProps {
  names: Readonly<Record<Lasting, string>>;
  isBusy: boolean;
  onlyThese: boolean;
  setOnlyThese(onlyThese: boolean): void;
  choose(remember: RememberFor): void;
}

/** Duration of a choice, and the arguments that it covers. */
function Scopes({ names, isBusy, onlyThese, setOnlyThese, choose }: ScopesProps) {
  const texts = useApprovalWords();
  return (
    <>
      {LASTING.map((scope) => (
        <button
          key={scope}
          type="button"
          className="button"
          disabled={isBusy}
          onClick={() => choose({ scope, arguments: onlyThese ? "these" : "any" })}
        >
          {names[scope]}
        </button>
      ))}
      <label>
        <input
          type="checkbox"
          checked={onlyThese}
          onChange={(event) => setOnlyThese(event.currentTarget.checked)}
        />
        {texts.onlyThese}
      </label>
    </>
  );
}

interface DenialProps {
  decision: Decision;
  denial: DenialForm;
  tool: string;
}

/** Denial with a reason; it can also stop the turn or deny similar calls from now on. */
function Denial({ decision: { isSending, deny, send }, denial, tool }: DenialProps) {
  const words = useWords();
  const texts = useApprovalWords();
  const [reason, setReason] = useState("");
  const [onlyThese, setOnlyThese] = useState(false);
  const container = useRef<HTMLInputElement>(null);
  useEffect(() => container.current?.focus(), []);
  const isBusy = isSending !== undefined;
  const answer = (more: Partial<ResolveApproval> = {}): void => {
    const trimmed = reason.trim();
    send({ decision: "deny", ...(trimmed === "" ? {} : { reason: trimmed }), ...more });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    answer();
  };
  return (
    <form
      onSubmit={submit}
      className="denial"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        deny(undefined);
      }}
    >
      <input
        ref={container}
        dir="auto"
        value={reason}
        aria-label={words.denyReason}
        placeholder={words.denyReason}
        onChange={(event) => setReason(event.currentTarget.value)}
        className="field"
      />
      <button type="submit" className="button danger" disabled={isBusy}>
        {words.deny}
      </button>
      <button
        type="button"
        className="button"
        title={texts.denyAndStopHow}
        disabled={isBusy}
        onClick={() => answer({ stop: true })}
      >
        {texts.denyAndStop}
      </button>
      {denial === "lasting" && (
        <div className="lasting">
          <Scopes
            names={texts.lastingDenial}
            isBusy={isBusy}
            onlyThese={onlyThese}
            setOnlyThese={setOnlyThese}
            choose={(remember) => answer({ remember })}
          />
          <p>{texts.alwaysDenied(tool, onlyThese)}</p>
        </div>
      )}
    </form>
  );
}
