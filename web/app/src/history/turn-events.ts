import type { Event } from "@throughline/client";
import { useCallback, useEffect, useState } from "react";
import { useClient } from "../session/context.tsx";

/** Maximum number of events that are loaded. */
const EVENTS_MAX = 50_000;

interface Followed {
  turnId: string;
  /** All events so far, from the first. */
  events: readonly Event[] | undefined;
  /** No more events will come. */
  isOver: boolean;
  error: unknown;
}

/** Events of a turn; a running one is followed. */
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
      // Pending updates are part of this one.
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
  // Events of the previous turn are not shown.
  return { ...(followed.turnId === turnId ? followed : nothing), again };
}
