// State of a conversation on the screen. Framework-free.

import type {
  ConnectionState,
  InputPart,
  QueuedMessageInfo,
  TurnNode,
  TurnStore,
  UserPart,
} from "@throughline/client";
import { fileIn } from "./file-text.ts";

export type Mode = "auto" | "native" | "text";

/** A turn of the current branch. */
export interface Entry {
  /** Stable key, from sending to the end. */
  readonly key: string;
  /** Id of the turn; `undefined` until the server has accepted it. */
  readonly turnId: string | undefined;
  readonly store: TurnStore;
  /** Parts of the user's message, until the server has it. */
  readonly draft: readonly DraftPart[] | undefined;
  /** Calls that the user has opened, by index: they stay open. */
  readonly opened?: Set<number>;
}

/** A part of a message that is being sent, with what can be shown of it. */
export type DraftPart =
  | { type: "text"; text: string }
  | { type: "image"; file_id: string; url: string; name: string };

export interface ConversationState {
  phase: "new" | "loading" | "ready" | "missing";
  id: string | undefined;
  title: string;
  entries: readonly Entry[];
  /** Cursor of older turns. */
  before: string | undefined;
  /** Cursor of later turns: the view was opened in the middle. */
  after: string | undefined;
  /** The turn that the view was opened at. */
  target: string | undefined;
  /** Neither listed nor searched, and deleted when it is closed. */
  isTemporary: boolean;
  /** All turns of all branches. */
  tree: readonly TurnNode[];
  /** The running turn. */
  running: Entry | undefined;
  connection: ConnectionState | undefined;
  /** Messages sent during the turn that are queued on the server. */
  waiting: readonly QueuedMessageInfo[];
  /** Messages that are not on the server yet. */
  unsent: readonly Unsent[];
  /** Stop was requested. */
  isStopping: boolean;
  /** The last error. */
  failure: unknown;
}

/** State of a new conversation. */
export const NEW: ConversationState = {
  phase: "new",
  id: undefined,
  title: "",
  entries: [],
  before: undefined,
  after: undefined,
  target: undefined,
  isTemporary: false,
  tree: [],
  running: undefined,
  connection: undefined,
  waiting: [],
  unsent: [],
  isStopping: false,
  failure: undefined,
};

/** A message sent during a turn that has not reached the server. */
export interface Unsent {
  readonly id: string;
  readonly draft: readonly DraftPart[];
  readonly when: "next_step" | "after_turn";
}

/** A part of any message: text, a file as text, or anything else. */
type Part = { type: string; text?: unknown };

/** Text of a message, without its files. */
export function wordsIn(draft: readonly Part[]): string {
  const words = draft.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : ""));
  return words.filter((text) => text !== "" && fileIn(text) === undefined).join("\n\n");
}

/** Pictures and files of a message. */
export function filesIn<P extends Part>(draft: readonly P[]): P[] {
  return draft.filter(({ type, text }) => type !== "text" || (typeof text === "string" && fileIn(text)));
}

/** The part in the server's format. */
export function partOf(draft: DraftPart): InputPart {
  return draft.type === "text" ? draft : { type: "image", file_id: draft.file_id };
}

/** Parts to show for a message that is sent again, until the server has it. */
export function shownOf(input: readonly UserPart[]): DraftPart[] {
  return input.flatMap((part) => (part.type === "text" ? [part] : []));
}
