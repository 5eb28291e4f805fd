import type { ConversationInfo } from "@throughline/client";
import { Undo2, X } from "lucide-react";
import { useEffect, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { go } from "../../shared/router.ts";
import { failed } from "../../ui/failed.ts";
import { IconButton } from "../../ui/icon-button.tsx";
import type { ConversationList } from "./model/list.ts";
import { useListWords } from "./words.ts";

/** Time for which undo is offered; it does not run while the pointer is over it. The server allows ten minutes. */
const OFFERED_MS = 30_000;

export interface Deletion {
  deleted: ConversationInfo | undefined;
  failure: unknown;
  remove(conversation: ConversationInfo): void;
  undo(): void;
  dismiss(): void;
}

/** Deletes conversations, and restores the last one. */
export function useDeletion(list: ConversationList, current: string | undefined): Deletion {
  const [deleted, setDeleted] = useState<ConversationInfo>();
  const [failure, setFailure] = useState<unknown>();
  const dismiss = (): void => {
    setDeleted(undefined);
    setFailure(undefined);
  };
  const act = async (work: Promise<void>, then: () => void): Promise<void> => {
    dismiss();
    try {
      await work;
      then();
    } catch (error) {
      setFailure(error);
    }
  };
  return {
    deleted,
    failure,
    dismiss,
    remove: (conversation) =>
      void act(list.remove(conversation.id), () => {
        setDeleted(conversation);
        if (conversation.id === current) go("/");
      }),
    undo: () => {
      if (deleted !== undefined) void act(list.restore(deleted.id), () => go(`/c/${deleted.id}`));
    },
  };
}

/** Toast about a deletion, with an undo button. */
export function UndoToast({ deletion: { deleted, failure, undo, dismiss } }: { deletion: Deletion }) {
  const words = useWords();
  const texts = useListWords();
  const [isHeld, setHeld] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `dismiss` is made anew each time
  useEffect(() => {
    if (deleted === undefined || isHeld) return undefined;
    const timer = setTimeout(dismiss, OFFERED_MS);
    return () => clearTimeout(timer);
  }, [deleted, isHeld]);
  const isOpen = deleted !== undefined || failure !== undefined;
  return (
    <div role="status">
      {isOpen && (
        // biome-ignore lint/a11y/noStaticElementInteractions: pointing at it only keeps it
        <div
          className="toast"
          onPointerEnter={() => setHeld(true)}
          onPointerLeave={() => setHeld(false)}
          onFocus={() => setHeld(true)}
          onBlur={() => setHeld(false)}
        >
          <span>{deleted ? texts.deleted(deleted.title || texts.untitled) : failed(failure, words)}</span>
          {deleted && (
            <button type="button" className="button" onClick={undo}>
              <Undo2 aria-hidden size={14} />
              {texts.undo}
            </button>
          )}
          <IconButton label={words.close} onClick={dismiss}>
            <X aria-hidden size={15} />
          </IconButton>
        </div>
      )}
    </div>
  );
}
