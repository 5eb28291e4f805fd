import type { CallBlock } from "@throughline/client";
import { useState } from "react";
import { argumentsOf } from "../../shared/call-card/tone.ts";
import { useChat } from "../context.tsx";
import { changesOf } from "../model/changes.ts";
import type { Entry } from "../model/entry.ts";
import { useChangeWords } from "./changes-words.ts";

const MARKS = { added: "+", changed: "≠", removed: "−" };

/** Differences between the arguments of this call and the last one of the same tool in the conversation. */
export default function Changes({ call }: { call: Readonly<CallBlock> }) {
  const words = useChangeWords();
  const { conversation } = useChat();
  const [before] = useState(() => ranBefore(conversation.get().entries, call));
  const [isOpen, setOpen] = useState(true);
  if (before === undefined) return null;
  const changes = changesOf(argumentsOf(before), argumentsOf(call));
  if (changes.length === 0) return <p className="mt-1 text-[12.5px] text-muted">{words.since(0)}</p>;
  return (
    <div className="mt-1">
      <button
        type="button"
        className="button quiet -ml-2"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {words.since(changes.length)}
      </button>
      {isOpen && (
        <ul className="changes">
          {changes.map(({ kind, path, before, now }) => (
            <li key={path} data-change={kind}>
              <span>
                <b aria-hidden>{MARKS[kind]}</b> {words[kind]}
              </span>
              <code>
                <b>{path}</b> {before && <del>{JSON.stringify(before.value)}</del>}
                {before && now && " → "}
                {now && <ins>{JSON.stringify(now.value)}</ins>}
              </code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The last call of the same tool that ran, and so was approved. */
function ranBefore(entries: readonly Entry[], call: Readonly<CallBlock>): Readonly<CallBlock> | undefined {
  const calls = entries.flatMap(({ store }) => store.outline().map(({ at }) => store.block(at)));
  const index = calls.findIndex((one) => one?.kind === "tool_call" && one.tool_id === call.tool_id);
  const before = calls
    .slice(0, index < 0 ? undefined : index)
    .findLast(
      (one) => one?.kind === "tool_call" && one.tool_name === call.tool_name && one.started_at !== undefined,
    );
  return before?.kind === "tool_call" ? before : undefined;
}
