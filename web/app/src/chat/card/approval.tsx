import type { CallBlock, ResolveApproval } from "@throughline/client";
import { pretty } from "@throughline/json";
import { visible } from "@throughline/visible";
import {
  type FormEvent,
  lazy,
  Suspense,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { useWords } from "../../i18n/use.ts";
import { failed } from "../../ui/failed.ts";
import { useChat, useEntry } from "../context.tsx";
import { argumentsOf, nameOf } from "./look.ts";

/** Few tools ask anything: its form is fetched with the first question. */
const Elicitation = lazy(() => import("./elicitation.tsx"));
const Changes = lazy(() => import("./changes.tsx"));

type Question = NonNullable<CallBlock["approval"]>;
type Scope = "call" | "turn" | "conversation" | "always";
const SCOPES: readonly Scope[] = ["call", "turn", "conversation", "always"];

interface ApprovalProps {
  call: Readonly<CallBlock>;
  approval: Question;
  isOpen: boolean;
}

/** The question on the card. R: A1, A2 */
export default function Approval({ call, approval, isOpen }: ApprovalProps) {
  const words = useWords();
  const place = useRef<HTMLDivElement>(null);
  const decision = useDecision(call, approval);
  const { attention } = useChat();
  const isCall = approval.kind !== "elicitation";
  const actions = useRef({ approve: () => {}, deny: () => {} });
  useEffect(() => {
    actions.current = { approve: () => decision.send({ decision: "approve" }), deny: decision.startDenial };
  });
  useEffect(() => {
    const show = (): void => {
      place.current?.scrollIntoView({ block: "center" });
      place.current?.querySelector<HTMLElement>("button, input, textarea")?.focus();
    };
    return attention.ask({
      id: approval.approval_id,
      // What a tool asks needs more than a key.
      approve: () => (isCall ? actions.current.approve() : show()),
      deny: () => actions.current.deny(),
      show,
      isVisible: () => isOnScreen(place.current),
    });
  }, [attention, approval.approval_id, isCall]);
  const id = useId();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out like this everywhere
    <div ref={place} role="group" aria-labelledby={id}>
      <div className="question">
        <p id={id} className="font-semibold">
          {isCall ? words.wantsTo(call.title || nameOf(call)) : words.asksTool(call.title || nameOf(call))}
        </p>
        {call.effect && <span className="text-[12px] text-muted">{words.effect[call.effect]}</span>}
        {approval.rule && <span className="ml-auto text-[12px] text-muted">{words.rule(approval.rule)}</span>}
      </div>
      {isOpen && isCall && <Arguments call={call} decision={decision} />}
      {isCall ? (
        <Buttons decision={decision} approval={approval} text={editable(call)} />
      ) : (
        <Suspense>
          <Elicitation approval={approval} isBusy={decision.isSending !== undefined} send={decision.send} />
        </Suspense>
      )}
      {decision.isDenying && <Denial send={decision.send} cancel={decision.endDenial} />}
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

interface Decision {
  isSending: "approve" | "deny" | undefined;
  isDenying: boolean;
  failure: string | undefined;
  /** The arguments as they are being edited; `undefined`: as they are. */
  draft: string | undefined;
  scope: Scope;
  setDraft(draft: string | undefined): void;
  setScope(scope: Scope): void;
  startDenial(): void;
  endDenial(): void;
  send(answer: ResolveApproval): void;
}

function useDecision(call: Readonly<CallBlock>, approval: Question): Decision {
  const words = useWords();
  const { conversation } = useChat();
  const entry = useEntry();
  const [isSending, setSending] = useState<"approve" | "deny">();
  const [isDenying, setDenying] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [draft, setDraft] = useState<string>();
  const [scope, setScope] = useState<Scope>("call");
  const send = async (answer: ResolveApproval): Promise<void> => {
    if (isSending !== undefined) return;
    const full: ResolveApproval = { ...answer };
    if (answer.decision === "approve" && draft !== undefined && draft !== editable(call)) {
      const edited = objectOf(draft);
      if (edited === undefined) return setFailure(words.notJson);
      full.arguments = edited;
    }
    if (scope !== "call") full.remember = scope;
    if (approval.arguments_hash !== undefined) full.arguments_hash = approval.arguments_hash;
    setSending(answer.decision);
    setFailure(undefined);
    try {
      await conversation.decide(entry, approval.approval_id, full);
      setDenying(false);
    } catch (error) {
      // The card stays as the server says it is.
      setSending(undefined);
      setFailure(error);
    }
  };
  return {
    isSending,
    isDenying,
    failure: failure === undefined ? failure : failed(failure, words),
    draft,
    scope,
    setDraft,
    setScope,
    startDenial: () => setDenying(true),
    endDenial: () => setDenying(false),
    send: (answer) => void send(answer),
  };
}

/** What is edited is what is there: a character that nobody sees is its escape, and comes back as itself. */
function editable(call: Readonly<CallBlock>): string {
  return visible(pretty(argumentsOf(call) ?? {}));
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function Arguments({ call, decision }: { call: Readonly<CallBlock>; decision: Decision }) {
  const words = useWords();
  const text = pretty(argumentsOf(call) ?? {});
  if (decision.draft === undefined) {
    return (
      <div className="px-3 pt-3">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
        <pre className="pre" tabIndex={0}>
          {text === "{}" ? words.noArguments : text}
        </pre>
        <Suspense>
          <Changes call={call} />
        </Suspense>
      </div>
    );
  }
  return (
    <div className="px-3 pt-3">
      <textarea
        aria-label={words.arguments}
        value={decision.draft}
        onChange={(event) => decision.setDraft(event.currentTarget.value)}
        rows={Math.min(16, decision.draft.split("\n").length + 1)}
        spellCheck={false}
        className="pre w-full resize-y border border-line-strong font-mono text-[12.5px]"
      />
    </div>
  );
}

function Buttons({ decision, approval, text }: { decision: Decision; approval: Question; text: string }) {
  const words = useWords();
  const { conversation, attention } = useChat();
  const entry = useEntry();
  const pending = useSyncExternalStore(attention.subscribe, attention.get);
  const isMine = attention.chosen()?.id === approval.approval_id;
  const { isSending, draft, setDraft, scope, setScope, send } = decision;
  const isBusy = isSending !== undefined;
  const approveAll = (): void =>
    void conversation.decide(entry, "all", { decision: "approve" }).catch(() => undefined);
  return (
    <div className="flex flex-wrap items-center gap-2 p-3">
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
      {pending.length > 1 && (
        <button type="button" className="button" disabled={isBusy} onClick={approveAll}>
          {words.approveAll(pending.length)}
        </button>
      )}
      <button type="button" className="button danger" disabled={isBusy} onClick={decision.startDenial}>
        {isSending === "deny" ? words.denying : words.deny}
        {isMine && <kbd aria-hidden>D</kbd>}
      </button>
      <button
        type="button"
        className="button quiet"
        disabled={isBusy}
        aria-pressed={draft !== undefined}
        onClick={() => setDraft(draft === undefined ? text : undefined)}
      >
        {draft === undefined ? words.editArguments : words.cancel}
      </button>
      <label className="ml-auto flex items-center gap-1.5 text-[12.5px] text-muted">
        {words.remember}
        <select
          value={scope}
          disabled={isBusy}
          onChange={(event) => setScope(SCOPES.find((one) => one === event.currentTarget.value) ?? "call")}
          className="rounded-control border border-line-strong bg-surface px-1.5 py-1"
        >
          {SCOPES.map((one) => (
            <option key={one} value={one}>
              {words.rememberScope[one]}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Denial({ send, cancel }: { send(answer: ResolveApproval): void; cancel(): void }) {
  const words = useWords();
  const [reason, setReason] = useState("");
  const place = useRef<HTMLInputElement>(null);
  useEffect(() => place.current?.focus(), []);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const said = reason.trim();
    send({ decision: "deny", ...(said === "" ? {} : { reason: said }) });
  };
  return (
    <form onSubmit={submit} className="flex gap-2 px-3 pb-3">
      <input
        ref={place}
        value={reason}
        aria-label={words.denyReason}
        placeholder={words.denyReason}
        onChange={(event) => setReason(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          cancel();
        }}
        className="field"
      />
      <button type="submit" className="button danger">
        {words.deny}
      </button>
    </form>
  );
}
