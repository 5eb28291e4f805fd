import { MessageCircleDashed } from "lucide-react";
import { useChat } from "../context.tsx";
import { useNoticeWords } from "./notice-words.ts";

/** Says of a temporary conversation what becomes of it, and how it stays. */
export default function TemporaryNotice({ id }: { id: string | undefined }) {
  const own = useNoticeWords();
  const { conversation } = useChat();
  return (
    <p role="note" className="temporary-notice">
      <MessageCircleDashed aria-hidden size={16} className="flex-none" />
      <span className="flex-1">
        <b>{own.title}.</b> {own.how}
      </span>
      {id !== undefined && (
        <button type="button" className="button" onClick={() => void conversation.keep()}>
          {own.keep}
        </button>
      )}
    </p>
  );
}
