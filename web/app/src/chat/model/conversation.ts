// One conversation on the screen: the turns of a branch, the running turn, and the actions. Framework-free.

import {
  ApiError,
  type ConnectionState,
  type InputPart,
  newKey,
  type ResolveApproval,
  type StartTurn,
  type Throughline,
  type TurnListener,
  type TurnNode,
  type TurnStarted,
  TurnStore,
} from "@throughline/client";
import { Store } from "../../store.ts";
import { delivered } from "./delivery.ts";
import {
  type ConversationState,
  type DraftPart,
  type Entry,
  filesIn,
  type Mode,
  NEW,
  partOf,
  shownOf,
  type Unsent,
  wordsIn,
} from "./entry.ts";

const PART = 30;
/** Times to look for the next queued turn, in ms. */
const NEXT_TURN_MS = [100, 200, 400, 800, 1_600];

export interface ConversationOptions {
  /** Listeners for the events of a running turn. */
  listeners?(turnId: string): readonly TurnListener[];
  /** A new conversation has got its id. */
  onBegun?(id: string): void;
  /** A followed turn has ended. */
  onEnd?(entry: Entry): void;
  /** Another conversation was opened while a turn runs, which continues. */
  onLeft?(turn: { turnId: string; conversationId: string | undefined; title: string }): void;
  /** Agent of the next turn; empty: the server's default. */
  agent?(): string;
  /** Model of the next turn, as `upstream/model`; empty: that of the agent. */
  model?(): string;
  /** The next conversation is temporary. */
  isTemporary?(): boolean;
}

/** A message that begins a turn, until the server has it. */
interface Outgoing {
  readonly before: readonly Entry[];
  entry: Entry;
  readonly unsend: AbortController;
  connection: ConnectionState | undefined;
}

/** The message was retracted before the server had it. */
export class MessageRetractedError extends Error {
  override readonly name = "MessageRetractedError";
}

export class ConversationStore extends Store<ConversationState> {
  /** Pending messages by conversation, "" for the new one: they are sent even if another conversation is opened. */
  readonly #outgoing = new Map<string, Outgoing>();
  readonly #retracted = new Set<string>();
  readonly #client: Throughline;
  readonly #options: ConversationOptions;
  #leave = new AbortController();
  #keys = 0;

  constructor(client: Throughline, options: ConversationOptions = {}) {
    super(NEW);
    this.#client = client;
    this.#options = options;
  }

  /**
   * Opens a conversation, at its end or at a turn; `undefined`: a new one. Turns of the previous conversation continue, and
   * a temporary one is deleted.
   */
  async open(id: string | undefined, turnId?: string): Promise<void> {
    if (id === this.state.id && this.state.phase !== "missing") {
      if (id === undefined || turnId === undefined || turnId === this.state.target) return;
      if (this.state.entries.some((entry) => entry.turnId === turnId)) return this.update({ target: turnId });
      return await this.#load(id, turnId);
    }
    const left = this.state;
    this.#leave.abort();
    this.#leave = new AbortController();
    this.update({ ...NEW, phase: id === undefined ? "new" : "loading", id });
    // A conversation with a running turn cannot be deleted; the server does that a day later.
    if (left.isTemporary && left.id !== undefined) void this.#delete(left.id).catch(() => undefined);
    if (id !== undefined) await this.#load(id, turnId);
    this.#showOutgoing();
  }

  async #delete(id: string): Promise<void> {
    await this.#client.call("DELETE /v1/conversations/{conversation_id}", {
      path: { conversation_id: id },
      query: { permanent: true },
    });
  }

  /** Makes a temporary conversation permanent. */
  async keep(): Promise<void> {
    const { id } = this.state;
    if (id === undefined) return;
    await this.#try(async () => {
      const path = { conversation_id: id };
      await this.#client.call("PATCH /v1/conversations/{conversation_id}", {
        path,
        body: { temporary: false },
      });
      this.update({ isTemporary: false });
    });
  }

  /** Called when the view unmounts, so there is nobody to notify. */
  close(): void {
    this.#leave.abort();
    this.state = NEW;
  }

  async loadOlder(): Promise<void> {
    const { id, before, entries } = this.state;
    if (id === undefined || before === undefined) return;
    const leaf = entries.at(-1)?.turnId;
    const part = await this.#client.call("GET /v1/conversations/{conversation_id}/messages", {
      path: { conversation_id: id },
      query: { before, limit: PART, ...(leaf === undefined ? {} : { leaf }) },
      signal: this.#leave.signal,
    });
    const older = part.messages.map(({ turn_id, message }) => this.#entry(turn_id, new TurnStore(message)));
    this.update({ entries: [...older, ...this.state.entries], before: part.before ?? undefined });
  }

  /** Loads the turns after the loaded ones. */
  async loadNewer(): Promise<void> {
    const { id, after, entries } = this.state;
    if (id === undefined || after === undefined) return;
    const part = await this.#client.call("GET /v1/conversations/{conversation_id}/messages", {
      path: { conversation_id: id },
      query: { after, limit: PART },
      signal: this.#leave.signal,
    });
    const newer = part.messages.map(({ turn_id, message }) => this.#entry(turn_id, new TurnStore(message)));
    this.update({ entries: [...entries, ...newer], after: part.after ?? undefined });
  }

  /** Looks for changes from another tab or the server. */
  async refresh(): Promise<void> {
    const { id, running, entries, after } = this.state;
    // A reader in the middle of the conversation is not moved.
    if (id === undefined || running !== undefined || after !== undefined) return;
    const tree = await this.#tree(id);
    if (tree === undefined || this.state.running !== undefined) return;
    const last = entries.at(-1)?.turnId;
    if ((tree.leaf_id ?? undefined) !== last || tree.running_turn_id != null) await this.#load(id);
  }

  /** Sends a message that begins a turn. `agent`: answers this message only, with its own model. */
  async send(draft: readonly DraftPart[], mode: Mode | undefined, agent?: string): Promise<void> {
    // A new message continues from the end, wherever the reader is.
    if (this.state.after !== undefined && this.state.id !== undefined) await this.#load(this.state.id);
    const { entries, id } = this.state;
    const parent = entries.at(-1)?.turnId;
    await this.#begin(entries, draft, {
      input: draft.map(partOf),
      ...(id === undefined ? {} : { conversation_id: id }),
      ...(parent === undefined ? {} : { parent_id: parent }),
      ...(mode === undefined ? {} : { mode }),
      ...(agent === undefined ? {} : { agent }),
    });
  }

  /** Answers a user message again: with other text an edit, with the same a regeneration, also by another `model`. */
  async again(
    entry: Entry,
    draft: readonly DraftPart[] | undefined,
    mode: Mode | undefined,
    model?: string,
  ): Promise<void> {
    const { entries, id, tree } = this.state;
    const at = entries.indexOf(entry);
    if (id === undefined || at < 0 || this.state.running !== undefined) return;
    const before = await this.#inputOf(entry);
    // Edited text, and the same pictures and files.
    const input = draft === undefined ? before : [...draft.map(partOf), ...filesIn(before)];
    const shown = shownOf(entry.store.head().input);
    const parent = tree.find((node) => node.id === entry.turnId)?.parent ?? undefined;
    await this.#begin(entries.slice(0, at), draft === undefined ? shown : [...draft, ...filesIn(shown)], {
      input,
      conversation_id: id,
      parent_id: parent?.turn_id ?? entries[at - 1]?.turnId ?? null,
      ...(parent?.seq == null ? {} : { parent_seq: parent.seq }),
      ...(mode === undefined ? {} : { mode }),
      ...(model === undefined ? {} : { model }),
    });
  }

  /** Runs an ended call again in a new turn, so that the model sees the result. */
  async retryCall(entry: Entry, toolId: string, text: string): Promise<void> {
    const { entries, running } = this.state;
    const at = entries.indexOf(entry);
    const turnId = entry.turnId;
    if (at < 0 || turnId === undefined || running !== undefined) return;
    await this.#beginWith(entries.slice(0, at + 1), [{ type: "text", text }], (signal) =>
      this.#client.call("POST /v1/turns/{turn_id}/calls/{tool_id}/retry", {
        path: { turn_id: turnId, tool_id: toolId },
        body: { text },
        signal,
      }),
    );
  }

  /** Alternative turns at the position of this one, oldest first. */
  siblings(entry: Entry): readonly TurnNode[] {
    const { tree } = this.state;
    const current = tree.find((node) => node.id === entry.turnId);
    if (current === undefined) return [];
    return tree.filter(
      (node) => node.parent?.turn_id === current.parent?.turn_id && node.parent?.seq === current.parent?.seq,
    );
  }

  /** Switches to the newest end of this turn's branch. */
  async switchTo(turnId: string): Promise<void> {
    const { id, tree } = this.state;
    if (id === undefined) return;
    let leaf = turnId;
    for (;;) {
      const next = tree.findLast((node) => node.parent?.turn_id === leaf);
      if (next === undefined) break;
      leaf = next.id;
    }
    await this.#try(async () => {
      await this.#client.call("PATCH /v1/conversations/{conversation_id}", {
        path: { conversation_id: id },
        body: { leaf_id: leaf },
      });
      await this.#load(id);
    });
  }

  /** Stops the running turn. Finished parts stay. */
  async stop(): Promise<void> {
    const turnId = this.state.running?.turnId;
    if (turnId === undefined)
      return this.#outgoing.get(this.state.id ?? "")?.unsend.abort(new MessageRetractedError());
    this.update({ isStopping: true });
    await this.#try(() =>
      this.#client.call("POST /v1/turns/{turn_id}/cancel", { path: { turn_id: turnId } }),
    );
  }

  /** Stops one call; the turn continues. */
  async cancelCall(entry: Entry, toolId: string): Promise<void> {
    const turn_id = entry.turnId;
    if (turn_id === undefined) return;
    await this.#try(() =>
      this.#client.call("POST /v1/turns/{turn_id}/calls/{tool_id}/cancel", {
        path: { turn_id, tool_id: toolId },
      }),
    );
  }

  /** Answers one approval, or `all` open ones. Throws what the server refuses, for the card to show. */
  async decide(entry: Entry, approvalId: string, answer: ResolveApproval): Promise<void> {
    const turn_id = entry.turnId;
    if (turn_id === undefined) return;
    await this.#client.call("POST /v1/turns/{turn_id}/approvals/{approval_id}", {
      path: { turn_id, approval_id: approvalId },
      body: answer,
    });
  }

  /** Sends a message to the running turn. If that has ended by then, the message begins the next turn. */
  async steer(draft: readonly DraftPart[], when: "next_step" | "after_turn"): Promise<void> {
    const turn_id = this.state.running?.turnId;
    if (turn_id === undefined) return;
    const { signal } = this.#leave;
    const unsent: Unsent = { id: newKey(), draft, when };
    const forget = (): void => this.update({ unsent: this.state.unsent.filter((one) => one !== unsent) });
    const show = (): void => {
      if (!this.state.unsent.includes(unsent)) this.update({ unsent: [...this.state.unsent, unsent] });
    };
    const send = async (): Promise<void> => {
      if (this.#retracted.delete(unsent.id)) return;
      const body = { id: unsent.id, input: draft.map(partOf), when };
      await this.#client.call("POST /v1/turns/{turn_id}/messages", { path: { turn_id }, body });
    };
    try {
      await delivered(send, new AbortController().signal, signal.aborted ? undefined : show);
      if (!signal.aborted) await this.#loadQueued(turn_id);
    } catch (error) {
      const isOver = error instanceof ApiError && (error.status === 404 || error.status === 409);
      if (isOver && !signal.aborted) {
        forget();
        return await (this.state.running === undefined
          ? this.send(draft, undefined)
          : this.steer(draft, when));
      }
      if (!signal.aborted) this.update({ failure: error });
    } finally {
      if (!signal.aborted) forget();
    }
  }

  /** Retracts a message that is queued here or on the server. */
  async retractMessage(messageId: string): Promise<void> {
    if (this.state.unsent.some(({ id }) => id === messageId)) {
      this.#retracted.add(messageId);
      this.update({ unsent: this.state.unsent.filter(({ id }) => id !== messageId) });
      return;
    }
    const turn_id = this.state.running?.turnId;
    if (turn_id === undefined) return;
    await this.#try(async () => {
      const path = { turn_id, message_id: messageId };
      await this.#client.call("DELETE /v1/turns/{turn_id}/messages/{message_id}", { path });
    });
    await this.#loadQueued(turn_id);
  }

  readonly dismissFailure = (): void => this.update({ failure: undefined });
  readonly fail = (failure: unknown): void => this.update({ failure });

  async #load(id: string, around?: string): Promise<void> {
    const { signal } = this.#leave;
    const path = { conversation_id: id };
    await this.#try(async () => {
      const [tree, branch] = await delivered(
        () =>
          Promise.all([
            this.#tree(id),
            this.#client.call("GET /v1/conversations/{conversation_id}/messages", {
              path,
              query: { limit: PART, ...(around === undefined ? {} : { around }) },
              signal,
            }),
          ]),
        signal,
      );
      if (tree === undefined || signal.aborted) return;
      const leaf_id = branch.leaf_id ?? undefined;
      // The running turn is on another branch, so that branch is shown.
      if (around !== undefined && leaf_id !== undefined && leaf_id !== tree.leaf_id)
        await this.#client.call("PATCH /v1/conversations/{conversation_id}", {
          path,
          body: { leaf_id },
          signal,
        });
      const known = new Map(this.state.entries.map((entry) => [entry.turnId, entry]));
      const entries = branch.messages.map(({ turn_id, message, status }) => {
        const old = known.get(turn_id);
        if (old !== undefined && status !== "running") return old;
        return this.#entry(turn_id, new TurnStore(message));
      });
      const [before, after] = [branch.before ?? undefined, branch.after ?? undefined];
      this.update({ phase: "ready", title: tree.title, entries, before, after, target: around });
      const running = entries.find((entry) => entry.turnId === tree.running_turn_id);
      if (running !== undefined) void this.#follow(running);
    });
    if (this.state.phase === "loading" && !signal.aborted) this.update({ phase: "missing" });
  }

  async #tree(id: string) {
    const { signal } = this.#leave;
    const tree = await this.#client.call("GET /v1/conversations/{conversation_id}", {
      path: { conversation_id: id },
      signal,
    });
    if (signal.aborted) return undefined;
    this.update({ tree: tree.tree, title: tree.title, isTemporary: tree.temporary });
    return tree;
  }

  async #begin(before: readonly Entry[], draft: readonly DraftPart[], turn: StartTurn): Promise<void> {
    const [agent, model] = [this.#options.agent?.(), this.#options.model?.()];
    const chosen = turn.agent ? {} : { ...(agent && { agent }), ...(model && { model }) };
    // The same request for each attempt: there is one turn, in one conversation.
    const idempotencyKey = newKey();
    let conversation: Pick<StartTurn, "conversation_id"> | undefined;
    const start = async (signal: AbortSignal): Promise<TurnStarted> => {
      conversation ??= turn.conversation_id == null ? await this.#newConversation(signal) : {};
      const body = { ...chosen, ...turn, ...conversation };
      return await this.#client.call("POST /v1/turns", { body, idempotencyKey, signal });
    };
    await this.#beginWith(before, draft, (signal, onConnection) =>
      delivered(() => start(signal), signal, onConnection),
    );
  }

  /** A new conversation is created by its first turn, unless it is temporary. */
  async #newConversation(signal: AbortSignal): Promise<Pick<StartTurn, "conversation_id">> {
    if (this.#options.isTemporary?.() !== true) return {};
    const made = await this.#client.call("POST /v1/conversations", { body: { temporary: true }, signal });
    this.update({ isTemporary: true });
    return { conversation_id: made.id };
  }

  async #beginWith(
    before: readonly Entry[],
    draft: readonly DraftPart[],
    start: (signal: AbortSignal, onConnection: (connection: ConnectionState) => void) => Promise<TurnStarted>,
  ): Promise<void> {
    const previous = this.state.entries;
    const entry: Entry = { ...this.#entry(undefined, new TurnStore()), draft };
    const outgoing: Outgoing = { before, entry, unsend: new AbortController(), connection: undefined };
    const conversation = this.state.id ?? "";
    this.#outgoing.set(conversation, outgoing);
    this.update({ failure: undefined, title: this.state.title || wordsIn(draft) });
    this.#showOutgoing();
    const isHere = (): boolean => this.state.running === outgoing.entry;
    this.#client.prepare();
    try {
      const started = await start(outgoing.unsend.signal, (connection) => {
        outgoing.connection = connection;
        if (isHere()) this.update({ connection });
      });
      this.#outgoing.delete(conversation);
      // If another conversation is open, this one shows the turn when it is opened again.
      if (!isHere()) return;
      const taken: Entry = { ...entry, turnId: started.turn_id };
      this.#exchange(entry, taken);
      const id = started.conversation_id ?? undefined;
      if (id !== undefined && this.state.id === undefined) {
        this.update({ id });
        this.#options.onBegun?.(id);
      }
      await this.#follow(taken);
    } catch (error) {
      this.#outgoing.delete(conversation);
      if (!isHere()) return this.update({ failure: error });
      // Nothing has started: the state is restored, and the text is back in the composer.
      const failure = error instanceof MessageRetractedError ? undefined : error;
      const phase = previous.length === 0 && this.state.id === undefined ? "new" : "ready";
      this.update({ phase, entries: previous, running: undefined, connection: undefined, failure });
      if (phase === "new") this.update({ title: "" });
      const busy = error instanceof ApiError && error.code === "conversation_busy";
      if (busy && this.state.id !== undefined) await this.#load(this.state.id);
      throw error;
    }
  }

  /** Appends messages that are still being sent. */
  #showOutgoing(): void {
    const { id, phase } = this.state;
    const outgoing = phase === "missing" ? undefined : this.#outgoing.get(id ?? "");
    if (outgoing === undefined) return;
    const { before, entry: running, connection } = outgoing;
    // After a reload the same turns are other entries, and maybe more of them.
    const last = before.at(-1)?.turnId;
    const at = this.state.entries.findIndex(({ turnId }) => turnId !== undefined && turnId === last);
    const known = at < 0 ? before : this.state.entries.slice(0, at + 1);
    this.update({ phase: "ready", entries: [...known, running], running, connection, isStopping: false });
  }

  async #follow(entry: Entry): Promise<void> {
    const { signal } = this.#leave;
    const { turnId, store } = entry;
    if (turnId === undefined) return;
    this.update({ running: entry, connection: { state: "connecting" } });
    const { id: conversationId, title } = this.state;
    const unsubscribe = this.#options.listeners?.(turnId).map((listener) => store.listen(listener));
    const after = store.head().seq;
    try {
      const onConnection = (connection: ConnectionState): void => {
        if (!signal.aborted) this.update({ connection });
      };
      const events = this.#client.follow(turnId, { signal, onConnection, ...(after > 0 ? { after } : {}) });
      for await (const batch of events.batches()) {
        for (const viewed of batch) store.take(viewed);
        if (batch.some(({ type }) => type === "user_message")) void this.#loadQueued(turnId);
      }
    } catch (error) {
      if (!signal.aborted) this.update({ failure: error });
    } finally {
      for (const stop of unsubscribe ?? []) stop();
    }
    if (signal.aborted) return this.#options.onLeft?.({ turnId, conversationId, title });
    const isAwaited = this.state.waiting.length > 0;
    this.update({ running: undefined, connection: undefined, isStopping: false, waiting: [] });
    this.#options.onEnd?.(entry);
    await this.#followNextTurn(turnId, isAwaited);
  }

  /** A message that was queued for the end of a turn begins the next one on the server, a moment later. */
  async #followNextTurn(ended: string, isAwaited: boolean): Promise<void> {
    const { id } = this.state;
    const { signal } = this.#leave;
    if (id === undefined) return;
    await this.#try(async () => {
      for (const ms of isAwaited ? [0, ...NEXT_TURN_MS] : [0]) {
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
        const tree = signal.aborted ? undefined : await this.#tree(id);
        if (tree === undefined || this.state.running !== undefined) return;
        const next = tree.running_turn_id ?? tree.leaf_id ?? undefined;
        if (next === undefined || next === ended) continue;
        // It may have ended already: then it is loaded as a whole.
        if (tree.running_turn_id == null) return await this.#load(id);
        const entry = this.#entry(next, new TurnStore());
        this.update({ entries: [...this.state.entries, entry] });
        return await this.#follow(entry);
      }
    });
  }

  /** Loads the queued messages. */
  async #loadQueued(turn_id: string): Promise<void> {
    try {
      const { messages } = await this.#client.call("GET /v1/turns/{turn_id}/messages", { path: { turn_id } });
      if (this.state.running?.turnId === turn_id) this.update({ waiting: messages });
    } catch {
      // An ended turn has no queued messages.
    }
  }

  /** Input of a turn, to be sent again. Its pictures are files again. */
  async #inputOf(entry: Entry): Promise<InputPart[]> {
    const parts = entry.store.head().input.map(async (part): Promise<InputPart> => {
      if (part.type === "text") return part;
      if (part.file_id !== undefined) return { type: part.type, file_id: part.file_id };
      const bytes = Uint8Array.from(atob(part.data ?? ""), (char) => char.charCodeAt(0));
      const body = new Blob([bytes], { type: part.media_type });
      const name = part.type === "file" ? part.name : "image";
      const file = await this.#client.call("POST /v1/files", { body, query: { name } });
      return { type: part.type, file_id: file.id };
    });
    return await Promise.all(parts);
  }

  #entry(turnId: string | undefined, store: TurnStore): Entry {
    this.#keys += 1;
    return { key: String(this.#keys), turnId, store, draft: undefined, opened: new Set() };
  }

  #exchange(old: Entry, entry: Entry): void {
    const entries = this.state.entries.map((one) => (one === old ? entry : one));
    this.update({ entries, running: this.state.running === old ? entry : this.state.running });
  }

  async #try(act: () => Promise<unknown>): Promise<void> {
    const { signal } = this.#leave;
    try {
      await act();
    } catch (error) {
      if (!signal.aborted) this.update({ failure: error });
    }
  }
}
