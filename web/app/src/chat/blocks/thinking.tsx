import { ChevronRight } from "lucide-react";
import { useId, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { useChat } from "../context.tsx";

/** What the model thinks, folded unless somebody wants to read it. */
export function Thinking({ text, isOpen }: { text: string; isOpen: boolean }) {
  const words = useWords();
  const { hold } = useChat();
  const id = useId();
  const [isShown, setShown] = useState(false);
  const toggle = (): void => {
    hold();
    setShown(!isShown);
  };
  return (
    <div className="text-[13.5px] text-muted">
      <button
        type="button"
        className="flex items-center gap-1.5 rounded-control py-0.5 hover:text-text disabled:hover:text-muted"
        aria-expanded={isShown}
        aria-controls={id}
        disabled={text === ""}
        onClick={toggle}
      >
        <ChevronRight aria-hidden size={14} className={isShown ? "rotate-90" : ""} />
        <span className={isOpen ? "shimmer" : ""}>{isOpen ? words.thinking : words.thought}</span>
      </button>
      <div id={id} hidden={!isShown} className="mt-1 border-l-2 border-line pl-3 whitespace-pre-wrap">
        {isShown && text}
      </div>
    </div>
  );
}
