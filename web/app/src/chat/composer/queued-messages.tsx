import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { useChat } from "../context.tsx";
import { type DraftPart, filesIn, wordsIn } from "../model/entry.ts";
import { fileIn } from "../model/file-text.ts";

/** Messages sent during a turn that are still queued. */
export function QueuedMessages({ restore }: { restore(words: string, files: readonly DraftPart[]): void }) {
  const words = useWords();
  const { conversation } = useChat();
  const { waiting, unsent } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const rows = [
    ...waiting.map(({ id, input, when }) => ({
      id,
      parts: input as unknown as readonly Part[],
      state: when === "after_turn" ? words.waitsForEnd : words.waitsForStep,
    })),
    ...unsent.map(({ id, draft: parts }) => ({ id, parts, state: words.waitsForServer })),
  ];
  if (rows.length === 0) return null;
  const retract = (id: string, parts: readonly Part[]): void => {
    restore(wordsIn(parts), filesIn(parts).filter(isOurs));
    void conversation.retractMessage(id);
  };
  return (
    <ul className="mb-2 grid gap-1">
      {rows.map(({ id, parts, state }) => (
        <li
          key={id}
          className="ms-auto flex max-w-[90%] items-center gap-2 rounded-full border border-line bg-surface py-1 pe-1 ps-3.5 text-[13px]"
        >
          <span dir="auto" className="truncate">
            {shortOf(parts)}
          </span>
          <span className="flex-none text-muted">{state}</span>
          <button
            type="button"
            aria-label={words.unsend}
            title={words.unsend}
            onClick={() => retract(id, parts)}
            className="grid size-6 flex-none place-items-center rounded-full hover:bg-sunken"
          >
            <X aria-hidden size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** A part of a queued message: on the server, or still here. */
type Part = { type: string; text?: unknown };

/** The text, and a label for each file. */
function shortOf(parts: readonly Part[]): string {
  const files = filesIn(parts).map(({ text }) => {
    const file = typeof text === "string" ? fileIn(text) : undefined;
    return file === undefined ? "🖼" : `📄 ${file.name}`;
  });
  return [wordsIn(parts), ...files].filter(Boolean).join(" ");
}

/** True for parts that the composer can show again: text, and pictures that this browser still has. */
function isOurs(part: Part): part is DraftPart {
  return typeof part.text === "string" || "url" in part;
}
