import { useHead } from "@throughline/client/react";
import { History, SquarePen } from "lucide-react";
import { useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { Link } from "../shell/link.tsx";
import { IconButton } from "../ui/icon-button.tsx";
import { duration } from "./clock.ts";
import { useChat } from "./context.tsx";
import type { Entry } from "./model/entry.ts";

/** What is talked about, and how fast. */
export function Header({ openList }: { openList(): void }) {
  const words = useWords();
  const { conversation } = useChat();
  const { title, entries, phase } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const last = entries.at(-1);
  return (
    <header className="flex h-13 flex-none items-center gap-2 border-b border-line pr-4 pl-3 min-[720px]:pr-6">
      <IconButton label={words.conversations} onClick={openList}>
        <History aria-hidden size={18} />
      </IconButton>
      <h1 className="min-w-0 flex-1 truncate text-[15px] font-semibold">
        {phase === "new" ? words.newConversation : title || words.newConversation}
      </h1>
      {last && <Figures key={last.key} entry={last} />}
      <Link href="/" className="icon-button" aria-label={words.newConversation} title={words.newConversation}>
        <SquarePen aria-hidden size={17} />
      </Link>
    </header>
  );
}

/** The figures of the turn at the end. */
function Figures({ entry }: { entry: Entry }) {
  const words = useWords();
  const { stats, usage, step } = useHead(entry.store);
  const { first_content_ms: first, wall_ms: wall } = stats ?? {};
  const tokens = usage.output_tokens;
  return (
    <p className="flex flex-none gap-3.5 text-[12.5px] text-muted tabular-nums max-[719px]:hidden">
      {first !== undefined && <span>{words.firstToken(duration(first))}</span>}
      {tokens !== undefined && wall !== undefined && wall > 0 && (
        <span>{words.perSecond(Math.round((tokens * 1_000) / wall))}</span>
      )}
      {step > 0 && <span>{words.step(step)}</span>}
    </p>
  );
}
