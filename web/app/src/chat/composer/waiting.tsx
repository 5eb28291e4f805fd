import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { useChat } from "../context.tsx";
import { filesIn, type Said, wordsIn } from "../model/entry.ts";
import { fileIn } from "../model/file-text.ts";

/** Messages sent during a turn that are still queued. */
export function Waiting({ restore }: { restore(words: string, files: readonly Said[]): void }) {
  const words = useWords();
  const { conversation } = useChat();
  const { waiting, unsent } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const rows = [
    ...waiting.map(({ id, input, when }) => ({
      id,
      said: input as unknown as readonly Part[],
      state: when === "after_turn" ? words.waitsForEnd : words.waitsForStep,
    })),
    ...unsent.map(({ id, said }) => ({ id, said, state: words.waitsForServer })),
  ];
  if (rows.length === 0) return null;
  const takeBack = (id: string, said: readonly Part[]): void => {
    restore(wordsIn(said), filesIn(said).filter(isOurs));
    void conversation.takeBack(id);
  };
  return (
    <ul className="mb-2 grid gap-1">
      {rows.map(({ id, said, state }) => (
        <li
          key={id}
          className="ms-auto flex max-w-[90%] items-center gap-2 rounded-full border border-line bg-surface py-1 pe-1 ps-3.5 text-[13px]"
        >
          <span dir="auto" className="truncate">
            {shortOf(said)}
          </span>
          <span className="flex-none text-muted">{state}</span>
          <button
            type="button"
            aria-label={words.unsend}
            title={words.unsend}
            onClick={() => takeBack(id, said)}
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
function shortOf(said: readonly Part[]): string {
  const files = filesIn(said).map(({ text }) => {
    const file = typeof text === "string" ? fileIn(text) : undefined;
    return file === undefined ? "🖼" : `📄 ${file.name}`;
  });
  return [wordsIn(said), ...files].filter(Boolean).join(" ");
}

/** True for parts that the composer can show again: text, and pictures that this browser still has. */
function isOurs(part: Part): part is Said {
  return typeof part.text === "string" || "url" in part;
}
