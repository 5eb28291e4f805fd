import type { RefObject } from "react";
import { useWords } from "../i18n/use.ts";

/** The list of keyboard shortcuts. Loaded after the chat. */
export default function Keys({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }) {
  const words = useWords();
  return (
    <dialog ref={dialog} aria-label={words.keys} className="sheet">
      <h2 className="mb-3 text-[15px] font-semibold">{words.keys}</h2>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 text-[13px]">
        {words.keysList.map(([key, does]) => (
          <div key={key} className="contents">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd className="text-muted">{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" className="mt-4 text-right">
        <button type="submit" className="button">
          {words.close}
        </button>
      </form>
    </dialog>
  );
}
