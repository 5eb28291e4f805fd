import type { Fault } from "@throughline/client";
import { useSyncExternalStore } from "react";
import { openModels } from "../../connect/open.ts";
import { useWords } from "../../i18n/use.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { mode } from "../composer/mode.ts";
import { useChat, useEntry } from "../context.tsx";

/** The model cannot call tools natively; written as text they work. */
const NO_TOOLS = "tool_calling_unsupported";

/** Why the message ends here, and what can be done. R: T3 */
export function ErrorBlock({ fault }: { fault: Readonly<Fault> }) {
  const words = useWords();
  const { conversation } = useChat();
  const entry = useEntry();
  const { entries, running } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const isLast = entries.at(-1) === entry && running === undefined;
  const again = (how: "text" | undefined): void => {
    if (how !== undefined) mode.set(how);
    void conversation.again(entry, undefined, how).catch(() => undefined);
  };
  const said = [
    words.serverText(fault.what, fault.code),
    words.serverText(fault.why),
    words.serverText(fault.remedy),
  ];
  const [what, why, remedy] = said;
  return (
    <div role="alert" className="rounded-card border border-error bg-error-soft px-4 py-3 text-[13.5px]">
      <span className="knot" data-look="bad" aria-hidden />
      <div className="flex items-start gap-2">
        <p className="flex-1 font-semibold whitespace-pre-wrap text-error">{what}</p>
        <CopyButton text={() => [fault.code, ...said].join("\n")} />
      </div>
      {why && <p className="mt-1 whitespace-pre-wrap">{why}</p>}
      {remedy && <p className="mt-1 whitespace-pre-wrap text-muted">{remedy}</p>}
      {isLast && (
        <div className="mt-3 flex flex-wrap gap-2">
          {fault.code === NO_TOOLS && (
            <button type="button" className="button primary" onClick={() => again("text")}>
              {words.switchToText}
            </button>
          )}
          {fault.code === "unauthorized" && (
            <button type="button" className="button primary" onClick={openModels}>
              {words.connectHow}
            </button>
          )}
          <button type="button" className="button" onClick={() => again(undefined)}>
            {words.tryAgain}
          </button>
        </div>
      )}
    </div>
  );
}
