import { PanelLeft, Search, SquarePen } from "lucide-react";
import { type RefObject, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { Link } from "../shared/link.tsx";
import { IconButton } from "../ui/icon-button.tsx";
import type { Offer } from "./composer/offer.ts";
import { useChat } from "./context.tsx";
import { PickerButton } from "./picker/button.tsx";

interface HeaderProps {
  offer: Offer | undefined;
  /** The list of conversations is shown next to the chat. */
  isListShown: boolean;
  /** Shows the list, or focuses its search if it is shown. */
  openList(): void;
  opener: RefObject<HTMLButtonElement | null>;
}

/** Title of the conversation, and the choice of its model. */
export function Header({ offer, isListShown, openList, opener }: HeaderProps) {
  const words = useWords();
  const { conversation } = useChat();
  const { title, phase } = useSyncExternalStore(conversation.subscribe, conversation.get);
  return (
    <header className="flex h-13 flex-none items-center gap-2 border-b border-line pe-4 ps-3 min-[720px]:pe-6">
      <IconButton
        ref={opener}
        label={isListShown ? words.searchConversations : words.conversations}
        aria-expanded={isListShown ? undefined : false}
        onClick={openList}
      >
        {isListShown ? <Search aria-hidden size={17} /> : <PanelLeft aria-hidden size={18} />}
      </IconButton>
      <h1 dir="auto" className="min-w-0 flex-1 truncate text-start text-[15px] font-semibold">
        {phase === "new" ? words.newConversation : title || words.newConversation}
      </h1>
      <PickerButton offer={offer} />
      <Link href="/" className="icon-button" aria-label={words.newConversation} title={words.newConversation}>
        <SquarePen aria-hidden size={17} />
      </Link>
    </header>
  );
}
