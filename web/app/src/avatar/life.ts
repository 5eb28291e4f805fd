// Idle behavior of the avatar during a turn: it thinks while the model does, looks at the card that runs, and waits with the user at an
// approval. Framework-free.

import type { Mood } from "@throughline/avatar";
import type { CallBlock } from "@throughline/client";
import type { ConversationState } from "../chat/model/entry.ts";
import { type Status, statusOf } from "../chat/model/status.ts";

/** The part of the stage that is controlled here. */
export interface AvatarControl {
  mood(mood: Mood): void;
  look(x?: number, y?: number): void;
}

/** The conversation that the avatar follows. */
export interface WatchedConversation {
  get(): Pick<ConversationState, "running" | "phase" | "connection" | "isStopping">;
  subscribe(listener: () => void): () => void;
}

/** Time for which the avatar looks at an approval before it looks back at the user. */
const AT_QUESTION_MS = 2_600;
const AT_PERSON_MS = 1_800;
/** Distance in pixels at which the eyes are turned as far as possible. */
const FAR_PX = 500;

const MOODS: Partial<Record<Status["kind"], Mood>> = {
  waiting_for_model: "thinks",
  waiting_for_client: "thinks",
  silent: "thinks",
  thinking: "thinks",
  retrying: "thinks",
  running: "watches",
  needs_you: "waits",
};

export function moodOf(kind: Status["kind"]): Mood {
  return MOODS[kind] ?? "rest";
}

/** Motion for a new status of a call. */
export function motionAt({ status }: Pick<CallBlock, "status">): string | undefined {
  return status === "error" || status === "timed_out" ? "Shrug" : undefined;
}

/** Direction from a face to an element: -1 far to the left or above, 1 far to the right or below. */
export function directionOf(face: DOMRect, seen: DOMRect): { x: number; y: number } {
  const toward = (from: number, to: number): number => Math.max(-1, Math.min(1, (to - from) / FAR_PX));
  return {
    x: toward(face.left + face.width / 2, seen.left + seen.width / 2),
    // The eyes are in the upper part of the figure.
    y: toward(face.top + face.height / 4, seen.top + seen.height / 2),
  };
}

/** Lets the avatar follow a conversation; returns a function that ends that. */
export function live(
  stage: AvatarControl,
  conversation: WatchedConversation,
  face: () => Element | undefined,
): () => void {
  let mood: Mood = "rest";
  let isAtPerson = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let frame = 0;
  let leaveTurn: (() => void) | undefined;
  let turn: unknown;

  const look = (): void => {
    frame = 0;
    const element = face();
    const status =
      mood === "watches" ? "running" : mood === "waits" && !isAtPerson ? "awaiting_approval" : undefined;
    const cards = status === undefined ? [] : document.querySelectorAll(`.card[data-status="${status}"]`);
    const card = [...cards].at(-1);
    if (element === undefined || card === undefined) return stage.look();
    const { x, y } = directionOf(element.getBoundingClientRect(), card.getBoundingClientRect());
    stage.look(x, y);
  };
  // The card is drawn first; several changes within a frame count once.
  const scheduleLook = (): void => {
    frame ||= requestAnimationFrame(look);
  };
  const onScroll = (): void => {
    if (mood === "watches" || mood === "waits") scheduleLook();
  };
  const alternate = (): void => {
    timer = setTimeout(
      () => {
        isAtPerson = !isAtPerson;
        scheduleLook();
        alternate();
      },
      isAtPerson ? AT_PERSON_MS : AT_QUESTION_MS,
    );
  };
  const update = (): void => {
    const { running, connection, isStopping } = conversation.get();
    const next =
      running === undefined
        ? "rest"
        : moodOf(
            statusOf({
              isRunning: true,
              isStopping,
              isTaken: running.turnId !== undefined,
              connection,
              head: running.store.head(),
              outline: running.store.outline(),
            }).kind,
          );
    if (next !== mood) {
      mood = next;
      stage.mood(mood);
      isAtPerson = false;
      clearTimeout(timer);
      if (mood === "waits") alternate();
    }
    scheduleLook();
  };
  const onChange = (): void => {
    const { running } = conversation.get();
    if (running !== turn) {
      turn = running;
      leaveTurn?.();
      const store = running?.store;
      const stops = store === undefined ? [] : [store.subscribeHead(update), store.subscribeOutline(update)];
      leaveTurn = () => {
        for (const stop of stops) stop();
      };
    }
    update();
  };

  onChange();
  const leaveConversation = conversation.subscribe(onChange);
  document.addEventListener("scroll", onScroll, { capture: true, passive: true });
  return () => {
    leaveConversation();
    leaveTurn?.();
    document.removeEventListener("scroll", onScroll, { capture: true });
    clearTimeout(timer);
    cancelAnimationFrame(frame);
  };
}
