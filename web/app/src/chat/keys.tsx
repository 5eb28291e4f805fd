import { type RefObject, useEffect, useRef } from "react";
import type { ConversationStore } from "./model/conversation.ts";
import { isTyped, type OpenApprovals } from "./model/open-approvals.ts";

interface Used {
  conversation: ConversationStore;
  openApprovals: OpenApprovals;
  field: RefObject<HTMLTextAreaElement | null>;
}

/** All keyboard shortcuts of the chat: one press does one thing. */
export function useKeys({ conversation, openApprovals, field }: Used): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
      if (event.key === "Escape" && document.querySelector(":popover-open") === null) {
        return void conversation.stop();
      }
      if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        event.preventDefault();
        return step(event.key === "ArrowUp" ? -1 : 1);
      }
      if (event.key === "F6" && openApprovals.key(event)) return event.preventDefault();
      if (isTyped(event.target)) return undefined;
      if (openApprovals.key(event)) return event.preventDefault();
      if (event.key === "/" && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        return field.current?.focus();
      }
      if (event.key === "?") dialog.current?.showModal();
      return undefined;
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [conversation, openApprovals, field]);
  return dialog;
}

/** Scrolls to the next or previous part of an answer. */
function step(by: 1 | -1): void {
  const blocks = [...document.querySelectorAll<HTMLElement>(".part")];
  const at = blocks.findIndex((block) => block.contains(document.activeElement));
  const next = at < 0 ? blocks.at(by < 0 ? -1 : 0) : blocks[at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
