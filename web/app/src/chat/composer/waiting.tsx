import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { useChat } from "../context.tsx";

/** What was said in mid-turn and was not taken in yet. R: T14 */
export function Waiting() {
  const words = useWords();
  const { conversation } = useChat();
  const { waiting } = useSyncExternalStore(conversation.subscribe, conversation.get);
  if (waiting.length === 0) return null;
  return (
    <ul className="mb-2 grid gap-1">
      {waiting.map(({ id, input, when }) => (
        <li
          key={id}
          className="ml-auto flex max-w-[90%] items-center gap-2 rounded-full border border-line bg-surface py-1 pr-1 pl-3.5 text-[13px]"
        >
          <span className="truncate">{textOf(input)}</span>
          <span className="flex-none text-muted">
            {when === "after_turn" ? words.waitsForEnd : words.waitsForStep}
          </span>
          <button
            type="button"
            aria-label={words.unsend}
            title={words.unsend}
            onClick={() => void conversation.takeBack(id)}
            className="grid size-6 flex-none place-items-center rounded-full hover:bg-sunken"
          >
            <X aria-hidden size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}

function textOf(input: readonly Record<string, unknown>[]): string {
  return input.flatMap((part) => (typeof part.text === "string" ? part.text : "🖼")).join(" ");
}
