import type { CallBlock } from "@throughline/client";
import { PartialJson, textOf } from "@throughline/json";
import { Fragment, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { progressOf } from "../../shared/call-card/tone.ts";

/** Arguments in one line: as they arrive, then the server's summary. */
export function Summary({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  if (call.status === "preparing") return <Preparing text={call.input_text ?? ""} />;
  const failure = call.error?.message?.split("\n", 1)[0];
  const isDenied = call.status === "denied";
  const struck = call.status === "cancelled" ? "line-through" : "";
  const progress = call.status === "running" ? progressOf(call.progress) : "";
  const isFailure = failure && (call.status === "error" || call.status === "unknown" || isDenied);
  const isEdited = wasEdited(call);
  const input = isEdited ? summaryOf(call.ran_with) : call.input_summary;
  const text = isFailure ? words.serverText(failure) : progress || input || words.noArguments;
  return (
    <>
      <span dir="auto" className={`summary ${struck}`}>
        {text}
      </span>
      {isEdited && <span className="edited">{words.editedByYou}</span>}
    </>
  );
}

/** True if it ran with other arguments than the model's. */
function wasEdited({ ran_with, arguments: requested }: Readonly<CallBlock>): boolean {
  return ran_with !== undefined && JSON.stringify(ran_with) !== JSON.stringify(requested);
}

/** Same length as the server's summaries. */
const SUMMARY_CHARS_MAX = 160;

function summaryOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return textOf(value);
  const parts = Object.entries(value).map(([name, one]) => `${name}: ${textOf(one)}`);
  return parts.join(", ").slice(0, SUMMARY_CHARS_MAX);
}

/** Incomplete or invalid arguments are shown by their end. */
const RAW_CHARS = 120;

/** Keys of incomplete arguments; a bar stands for the value that is being written. */
function Preparing({ text }: { text: string }) {
  const [partial] = useState(() => new PartialJson());
  const { entries, state } = partial.read(text);
  const bar = <span className="ghost" aria-hidden />;
  if (state === "broken") {
    return (
      <span className="summary">
        {text.slice(-RAW_CHARS)} {bar}
      </span>
    );
  }
  return (
    <span className="summary">
      {entries.map(({ key, value, isComplete }, at) => (
        <Fragment key={`${at}`}>
          {at > 0 && ", "}
          <span className="text-code-key">{key}</span>: {isComplete ? value : bar}
        </Fragment>
      ))}
      {entries.length === 0 && bar}
    </span>
  );
}
