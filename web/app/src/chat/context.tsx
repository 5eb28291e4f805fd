import { createContext, useContext } from "react";
import type { Avatar } from "../avatar/model.ts";
import type { ConversationStore } from "./model/conversation.ts";
import type { Entry } from "./model/entry.ts";
import type { OpenApprovals } from "./model/open-approvals.ts";

/** Actions and stores for cards and blocks. It never changes while a turn streams. */
export interface Chat {
  conversation: ConversationStore;
  openApprovals: OpenApprovals;
  avatar: Avatar;
  /** Keeps the scroll position while something above or below opens. */
  hold(): void;
}

const ChatContext = createContext<Chat | undefined>(undefined);
export const ChatProvider = ChatContext.Provider;

export function useChat(): Chat {
  const chat = useContext(ChatContext);
  if (chat === undefined) throw new Error("there is no chat here");
  return chat;
}

const EntryContext = createContext<Entry | undefined>(undefined);
export const EntryProvider = EntryContext.Provider;

/** The turn of a block. */
export function useEntry(): Entry {
  const entry = useContext(EntryContext);
  if (entry === undefined) throw new Error("there is no turn here");
  return entry;
}
