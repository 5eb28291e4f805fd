import type { Event } from "@throughline/client";
import { useCallback, useEffect, useState } from "react";
import { useClient } from "../session/context.tsx";

/** More events are not taken into the page. */
const EVENTS_MAX = 50_000;

interface Followed {
  turnId: string;
  /** All events that there are, from the first. */
  events: readonly Event[] | undefined;
  /** Nothing more will come. */
  isOver: boolean;
  error: unknown;
}

/** The events of a turn; those of one that runs as they come. */
export function useTurnEvents(turnId: string): Followed & { again(): void } {
  const client = useClient();
  const [attempt, setAttempt] = useState(0);
  const nothing: Followed = { turnId, events: undefined, isOver: false, error: undefined };
  const [followed, setFollowed] = useState(nothing);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt asks the same
  useEffect(() => {
    const leave = new AbortController();
    const { signal } = leave;
    const events: Event[] = [];
    let frame: number | undefined;
    const show = (isOver: boolean): void => {
      // What was to be drawn next is in this already.
      if (frame !== undefined) cancelAnimationFrame(frame);
      frame = undefined;
      if (!signal.aborted) setFollowed({ turnId, events: events.slice(), isOver, error: undefined });
    };
    const follow = async (): Promise<void> => {
      for await (const viewed of client.follow(turnId, { signal, failuresMax: 3 })) {
        if (!("seq" in viewed)) continue;
        events.push(viewed);
        if (events.length >= EVENTS_MAX) break;
        frame ??= requestAnimationFrame(() => show(false));
      }
      show(true);
    };
    follow().catch((error: unknown) => {
      if (!signal.aborted) setFollowed({ turnId, events: undefined, isOver: true, error });
    });
    return () => {
      leave.abort();
      if (frame !== undefined) cancelAnimationFrame(frame);
    };
  }, [client, turnId, attempt]);
  const again = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  // Of another turn nothing is shown until its own events are here.
  return { ...(followed.turnId === turnId ? followed : nothing), again };
}
