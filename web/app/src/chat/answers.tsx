// What draws the turns of a conversation: fetched after the composer stands, before anybody can have sent something.

import { useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { useChat } from "./context.tsx";
import { TurnView } from "./thread/turn.tsx";

export { Shown } from "./thread/shown.tsx";

/** The turns of the branch that is shown. */
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
