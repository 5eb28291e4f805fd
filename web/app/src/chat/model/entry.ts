// What a conversation on the screen consists of. Framework-free.

import type {
  Connection,
  InputPart,
  QueuedMessageInfo,
  TurnNode,
  TurnStore,
  UserPart,
} from "@throughline/client";

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
  /** All turns of all branches. */
  tree: readonly TurnNode[];
  /** The turn that runs now. */
  running: Entry | undefined;
  connection: Connection | undefined;
  /** What was said in mid-turn and waits. */
  waiting: readonly QueuedMessageInfo[];
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
  tree: [],
  running: undefined,
  connection: undefined,
  waiting: [],
  isStopping: false,
  failure: undefined,
};

/** As the server takes it. */
export function partOf(said: Said): InputPart {
  return said.type === "text" ? said : { type: "image", file_id: said.file_id };
}

/** What is shown of a message that is said again, until the server tells it. */
export function shownOf(input: readonly UserPart[]): Said[] {
  return input.flatMap((part) => (part.type === "text" ? [part] : []));
}
