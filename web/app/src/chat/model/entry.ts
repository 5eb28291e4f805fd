// What a conversation on the screen consists of. Framework-free.

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

/** A turn of the branch that is shown. */
export interface Entry {
  /** The same from when it is sent to when it is gone. */
  readonly key: string;
  /** `undefined` while the server has not taken it yet. */
  readonly turnId: string | undefined;
  readonly store: TurnStore;
  /** What the user said, before the server has it. */
  readonly said: readonly Said[] | undefined;
  /** Calls that somebody has opened, by their places: they stay as they are. */
  readonly opened?: Set<number>;
}

/** A part of what is being sent, with what can be shown of it now. */
export type Said =
  | { type: "text"; text: string }
  | { type: "image"; file_id: string; url: string; name: string };

export interface ConversationState {
  phase: "new" | "loading" | "ready" | "missing";
  id: string | undefined;
  title: string;
  entries: readonly Entry[];
  /** There are older turns. */
  before: string | undefined;
  /** There are later turns: a place in the middle was gone to. */
  after: string | undefined;
  /** The turn that was gone to. */
  target: string | undefined;
  /** Neither listed nor searched, and deleted when it is left. */
  isTemporary: boolean;
  /** All turns of all branches. */
  tree: readonly TurnNode[];
  /** The turn that runs now. */
  running: Entry | undefined;
  connection: ConnectionState | undefined;
  /** What was said in mid-turn and waits. */
  waiting: readonly QueuedMessageInfo[];
  /** What is on its way to where it waits. */
  unsent: readonly Unsent[];
  /** Stop was pressed. */
  isStopping: boolean;
  /** The last thing that did not work. */
  failure: unknown;
}

/** Before anything is said. */
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

/** What was said in mid-turn and has not reached the server. */
export interface Unsent {
  readonly id: string;
  readonly said: readonly Said[];
  readonly when: "next_step" | "after_turn";
}

/** A part of a message, of whomever: text, a file as text, or anything else. */
type Part = { type: string; text?: unknown };

/** The words of what was said, without its files. */
export function wordsIn(said: readonly Part[]): string {
  const words = said.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : ""));
  return words.filter((text) => text !== "" && fileIn(text) === undefined).join("\n\n");
}

/** What went along with words: pictures and files. */
export function filesIn<P extends Part>(said: readonly P[]): P[] {
  return said.filter(({ type, text }) => type !== "text" || (typeof text === "string" && fileIn(text)));
}

/** As the server takes it. */
export function partOf(said: Said): InputPart {
  return said.type === "text" ? said : { type: "image", file_id: said.file_id };
}

/** What is shown of a message that is said again, until the server tells it. */
export function shownOf(input: readonly UserPart[]): Said[] {
  return input.flatMap((part) => (part.type === "text" ? [part] : []));
}
