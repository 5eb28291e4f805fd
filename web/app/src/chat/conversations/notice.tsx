import { MessageCircleDashed } from "lucide-react";
import { useChat } from "../context.tsx";
import { useNoticeWords } from "./notice-words.ts";

/** Notice that a temporary conversation will be deleted, with a button to keep it. */
export default function TemporaryNotice({ id }: { id: string | undefined }) {
  const texts = useNoticeWords();
  const { conversation } = useChat();
  return (
    <p role="note" className="temporary-notice">
      <MessageCircleDashed aria-hidden size={16} className="flex-none" />
      <span className="flex-1">
        <b>{texts.title}.</b> {texts.how}
      </span>
      {id !== undefined && (
        <button type="button" className="button" onClick={() => void conversation.keep()}>
          {texts.keep}
        </button>
      )}
    </p>
  );
}
