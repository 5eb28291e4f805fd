import { type Event, TurnStore } from "@throughline/client";
import { useEffect, useMemo, useRef, useState } from "react";
import { Avatar } from "../../avatar/model.ts";
import { useClient } from "../../session/context.tsx";
import { ChatProvider, EntryProvider } from "../context.tsx";
import { ConversationStore } from "../model/conversation.ts";
import { OpenApprovals } from "../model/open-approvals.ts";
import { Thread } from "./turn.tsx";

interface ShownProps {
  /** All events of a turn. */
  events: readonly Event[];
  /** Number of events to apply. */
  count: number;
  /** Id of the turn, if its approvals can be answered. */
  turnId?: string;
  /** More events are expected. */
  isRunning?: boolean;
}

/** A message outside of a conversation, read only. */
export function Shown({ events, count, turnId, isRunning = count < events.length }: ShownProps) {
  const client = useClient();
  const store = useStore(events, count);
  const chat = useMemo(() => {
    const [conversation, openApprovals] = [new ConversationStore(client), new OpenApprovals()];
    return { conversation, openApprovals, avatar: new Avatar(client), hold: () => undefined };
  }, [client]);
  const entry = useMemo(
    () => ({ key: "", turnId, store, draft: undefined, opened: new Set<number>() }),
    [store, turnId],
  );
  return (
    <ChatProvider value={chat}>
      <EntryProvider value={entry}>
        <Thread isRunning={isRunning} />
      </EntryProvider>
    </ChatProvider>
  );
}

/** Moving forward adds events; moving back starts a new store. */
function useStore(events: readonly Event[], count: number): TurnStore {
  const taken = useRef(0);
  const [store, setStore] = useState(() => new TurnStore());
  useEffect(() => {
    let into = store;
    if (count < taken.current) {
      into = new TurnStore();
      taken.current = 0;
      setStore(into);
    }
    for (const event of events.slice(taken.current, count)) into.take(event);
    taken.current = count;
  }, [events, count, store]);
  return store;
}
