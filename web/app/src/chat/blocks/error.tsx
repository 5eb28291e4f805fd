import type { Fault } from "@throughline/client";
import { useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { openModels } from "../../shared/open-models.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { mode } from "../composer/mode.ts";
import { useChat, useEntry } from "../context.tsx";
import type { Entry } from "../model/entry.ts";
import { useErrorWords } from "./error-words.ts";

/** The model cannot call tools natively; text mode works. */
const NO_TOOLS = "tool_calling_unsupported";
/** Errors by which a reply broke off in the middle. */
const TORN: ReadonlySet<string> = new Set([
  "upstream_lost",
  "upstream_timeout",
  "upstream_error",
  "upstream_finish",
]);

/** The most useful action for an error. */
type Help = "continue" | "text_mode" | "connect" | "again";

function helpFor(fault: Readonly<Fault>, { store }: Entry): Help {
  if (fault.code === NO_TOOLS) return "text_mode";
  if (fault.code === "unauthorized" || fault.code === "access_denied") return "connect";
  const hasText = store.outline().some(({ at }) => {
    const block = store.block(at);
    return block?.kind === "text" && block.text.trim() !== "";
  });
  return hasText && TORN.has(fault.code) ? "continue" : "again";
}

/** Error at the end of a message: a sentence and a remedy, with details to unfold. */
export function ErrorBlock({ fault }: { fault: Readonly<Fault> }) {
  const words = useWords();
  const texts = useErrorWords();
  const { conversation } = useChat();
  const entry = useEntry();
  const { entries, running } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const isLast = entries.at(-1) === entry && running === undefined;
  const again = (how: "text" | undefined): void => {
    if (how !== undefined) mode.set(how);
    void conversation.again(entry, undefined, how).catch(() => undefined);
  };
  const help = helpFor(fault, entry);
  const what = words.serverText(fault.what, fault.code);
  const [why, remedy] = [words.serverText(fault.why), words.serverText(fault.remedy)];
  const acts: Readonly<Record<Help, readonly [label: string, act: () => void]>> = {
    continue: [
      words.continue,
      () =>
        void conversation
          .send([{ type: "text", text: words.continuePrompt }], mode.chosen())
          .catch(() => undefined),
    ],
    text_mode: [words.switchToText, () => again("text")],
    connect: [words.connectHow, openModels],
    again: [words.tryAgain, () => again(undefined)],
  };
  const advice = help === "continue" ? texts.kept : remedy;
  const [label, act] = acts[help];
  return (
    <div role="alert" className="fault">
      <span className="knot" data-look="bad" aria-hidden />
      <p dir="auto" className="font-semibold whitespace-pre-wrap text-error">
        {what}
      </p>
      {advice && (
        <p dir="auto" className="mt-1 whitespace-pre-wrap">
          {advice}
        </p>
      )}
      <div className="mt-2.5 flex flex-wrap items-center gap-2">
        {isLast && (
          <>
            <button type="button" className="button primary" onClick={act}>
              {label}
            </button>
            {help !== "again" && (
              <button type="button" className="button" onClick={() => again(undefined)}>
                {words.tryAgain}
              </button>
            )}
          </>
        )}
        <details>
          <summary>{words.details}</summary>
          <div className="flex items-start gap-2">
            <div className="min-w-0 flex-1">
              {why && (
                <p dir="auto" className="whitespace-pre-wrap [overflow-wrap:anywhere]">
                  {why}
                </p>
              )}
              <code className="text-muted">{fault.code}</code>
            </div>
            <CopyButton text={() => [fault.code, what, why, remedy].filter(Boolean).join("\n")} />
          </div>
        </details>
      </div>
    </div>
  );
}
