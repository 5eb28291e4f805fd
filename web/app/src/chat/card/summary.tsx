import type { CallBlock } from "@throughline/client";
import { PartialJson } from "@throughline/json";
import { Fragment, useState } from "react";
import { useWords } from "../../i18n/use.ts";

/** One line about the arguments: as far as they are readable while they arrive, then what the server makes of them. */
export function Summary({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  if (call.status === "preparing") return <Preparing text={call.input_text ?? ""} />;
  const failure = call.error?.message?.split("\n", 1)[0];
  const isDenied = call.status === "denied";
  const struck = call.status === "cancelled" ? "line-through" : "";
  const said =
    failure && (call.status === "error" || isDenied) ? words.serverText(failure) : call.input_summary;
  return <span className={`summary ${struck}`}>{said || words.noArguments}</span>;
}

/** Arguments that are no JSON yet, or never will be, are shown by their end. */
const RAW_CHARS = 120;

/** Keys as they become readable; a bar stands for the value that is still written. */
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
