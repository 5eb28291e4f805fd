// The turns of a conversation: loaded after the composer, before the first message can have been sent.

import { useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { useChat } from "./context.tsx";
import { TurnView } from "./thread/turn.tsx";

export { Shown } from "./thread/shown.tsx";

/** The turns of the current branch. */
export default function Answers() {
  const words = useWords();
  const { conversation } = useChat();
  const { entries, running } = useSyncExternalStore(conversation.subscribe, conversation.get);
  return (
    <ol aria-label={words.chat}>
      {entries.map((entry) => (
        <TurnView key={entry.key} entry={entry} isRunning={entry === running} />
      ))}
    </ol>
  );
}
