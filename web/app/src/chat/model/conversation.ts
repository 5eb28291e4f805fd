// One conversation on the screen: the turns of a branch, the one that runs, and what can be done. Framework-free.

import {
  ApiError,
  type Connection,
  type InputPart,
  type ResolveApproval,
  type StartTurn,
  type Throughline,
  type TurnListener,
  type TurnNode,
  TurnStore,
} from "@throughline/client";
import { type ConversationState, type Entry, type Mode, NEW, partOf, type Said, shownOf } from "./entry.ts";

const PART = 30;
/** When to look for a turn that begins by itself. */
const NEXT_TURN_MS = [100, 200, 400, 800, 1_600];

export interface ConversationOptions {
  /** Whoever is told what comes in a turn that runs. */
  listeners?(turnId: string): readonly TurnListener[];
  /** A new conversation has got its id. */
  onBegun?(id: string): void;
  /** A turn that was followed has ended. */
  onEnd?(): void;
  /** Who is to answer; empty: whom the server names. */
  agent?(): string;
}

export class ConversationStore {
  readonly #client: Throughline;
  readonly #options: ConversationOptions;
  readonly #listeners = new Set<() => void>();
  #state = NEW;
  #leave = new AbortController();
  #keys = 0;

  constructor(client: Throughline, options: ConversationOptions = {}) {
    this.#client = client;
    this.#options = options;
  }

  readonly get = (): ConversationState => this.#state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Shows a conversation; `undefined`: a new one. The turns of the one before go on by themselves. */
  async open(id: string | undefined): Promise<void> {
    if (id === this.#state.id && this.#state.phase !== "missing") return;
    this.#leave.abort();
    this.#leave = new AbortController();
    this.#set({ ...NEW, phase: id === undefined ? "new" : "loading", id });
    if (id !== undefined) await this.#load(id);
  }

  close(): void {
    this.#leave.abort();
    this.#state = NEW;
  }

  async loadOlder(): Promise<void> {
    const { id, before, entries } = this.#state;
    if (id === undefined || before === undefined) return;
    const leaf = entries.at(-1)?.turnId;
    const part = await this.#client.call("GET /v1/conversations/{conversation_id}/messages", {
      path: { conversation_id: id },
      query: { before, limit: PART, ...(leaf === undefined ? {} : { leaf }) },
      signal: this.#leave.signal,
    });
    const older = part.messages.map(({ turn_id, message }) => this.#entry(turn_id, new TurnStore(message)));
    this.#set({ entries: [...older, ...this.#state.entries], before: part.before ?? undefined });
  }

  /** Looks whether something has happened elsewhere: in another tab, or on the server. */
  async refresh(): Promise<void> {
    const { id, running, entries } = this.#state;
    if (id === undefined || running !== undefined) return;
    const tree = await this.#tree(id);
    if (tree === undefined || this.#state.running !== undefined) return;
    const last = entries.at(-1)?.turnId;
    if ((tree.leaf_id ?? undefined) !== last || tree.running_turn_id != null) await this.#load(id);
  }

  /** Says something: begins a turn. */
  async send(said: readonly Said[], mode: Mode | undefined, model?: string): Promise<void> {
    const { entries, id } = this.#state;
    const parent = entries.at(-1)?.turnId;
    await this.#begin(entries, said, {
      input: said.map(partOf),
      ...(id === undefined ? {} : { conversation_id: id }),
      ...(parent === undefined ? {} : { parent_id: parent }),
      ...(mode === undefined ? {} : { mode }),
      ...(model === undefined ? {} : { model }),
    });
  }

  /** Answers a question of the user anew: with other words an edit, with the same a regeneration. */
  async again(entry: Entry, said: readonly Said[] | undefined, mode: Mode | undefined): Promise<void> {
    const { entries, id, tree } = this.#state;
    const at = entries.indexOf(entry);
    if (id === undefined || at < 0 || this.#state.running !== undefined) return;
    const input = said === undefined ? await this.#inputOf(entry) : said.map(partOf);
    const parent = tree.find((node) => node.id === entry.turnId)?.parent ?? undefined;
    await this.#begin(entries.slice(0, at), said ?? shownOf(entry.store.head().input), {
      input,
      conversation_id: id,
      parent_id: parent?.turn_id ?? entries[at - 1]?.turnId ?? null,
      ...(parent?.seq == null ? {} : { parent_seq: parent.seq }),
      ...(mode === undefined ? {} : { mode }),
    });
  }

  /** Turns that answer the same place as this one, oldest first. */
  siblings(entry: Entry): readonly TurnNode[] {
    const { tree } = this.#state;
    const own = tree.find((node) => node.id === entry.turnId);
    if (own === undefined) return [];
    return tree.filter(
      (node) => node.parent?.turn_id === own.parent?.turn_id && node.parent?.seq === own.parent?.seq,
    );
  }

  /** Goes to the branch of this turn: to its newest end. */
  async switchTo(turnId: string): Promise<void> {
    const { id, tree } = this.#state;
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

  /** Stops the turn that runs. What is finished stays. */
  async stop(): Promise<void> {
    const turnId = this.#state.running?.turnId;
    if (turnId === undefined) return;
    this.#set({ isStopping: true });
    await this.#try(() =>
      this.#client.call("POST /v1/turns/{turn_id}/cancel", { path: { turn_id: turnId } }),
    );
  }

  /** Stops one call; the turn goes on. */
  async cancelCall(entry: Entry, toolId: string): Promise<void> {
    const turn_id = entry.turnId;
    if (turn_id === undefined) return;
    await this.#try(() =>
      this.#client.call("POST /v1/turns/{turn_id}/calls/{tool_id}/cancel", {
        path: { turn_id, tool_id: toolId },
      }),
    );
  }

  /** Answers a question, or `all` that are open. Throws what the server refuses: the card shows it. */
  async decide(entry: Entry, approvalId: string, answer: ResolveApproval): Promise<void> {
    const turn_id = entry.turnId;
    if (turn_id === undefined) return;
    await this.#client.call("POST /v1/turns/{turn_id}/approvals/{approval_id}", {
      path: { turn_id, approval_id: approvalId },
      body: answer,
    });
  }

  /** Says something to the turn that runs. */
  async say(said: readonly Said[], when: "next_step" | "after_turn"): Promise<void> {
    const turn_id = this.#state.running?.turnId;
    if (turn_id === undefined) return;
    await this.#try(async () => {
      await this.#client.call("POST /v1/turns/{turn_id}/messages", {
        path: { turn_id },
        body: { input: said.map(partOf), when },
      });
      await this.#look(turn_id);
    });
  }

  /** Takes back what waits. */
  async takeBack(messageId: string): Promise<void> {
    const turn_id = this.#state.running?.turnId;
    if (turn_id === undefined) return;
    await this.#try(async () => {
      const path = { turn_id, message_id: messageId };
      await this.#client.call("DELETE /v1/turns/{turn_id}/messages/{message_id}", { path });
    });
    await this.#look(turn_id);
  }

  readonly dismissFailure = (): void => this.#set({ failure: undefined });

  async #load(id: string): Promise<void> {
    const { signal } = this.#leave;
    await this.#try(async () => {
      const [tree, branch] = await Promise.all([
        this.#tree(id),
        this.#client.call("GET /v1/conversations/{conversation_id}/messages", {
          path: { conversation_id: id },
          query: { limit: PART },
          signal,
        }),
      ]);
      if (tree === undefined || signal.aborted) return;
      const known = new Map(this.#state.entries.map((entry) => [entry.turnId, entry]));
      const entries = branch.messages.map(({ turn_id, message, status }) => {
        const old = known.get(turn_id);
        if (old !== undefined && status !== "running") return old;
        return this.#entry(turn_id, new TurnStore(message));
      });
      this.#set({ phase: "ready", title: tree.title, entries, before: branch.before ?? undefined });
      const running = entries.find((entry) => entry.turnId === tree.running_turn_id);
      if (running !== undefined) void this.#follow(running);
    });
    if (this.#state.phase === "loading" && !signal.aborted) this.#set({ phase: "missing" });
  }

  async #tree(id: string) {
    const { signal } = this.#leave;
    const tree = await this.#client.call("GET /v1/conversations/{conversation_id}", {
      path: { conversation_id: id },
      signal,
    });
    if (signal.aborted) return undefined;
    this.#set({ tree: tree.tree, title: tree.title });
    return tree;
  }

  async #begin(before: readonly Entry[], said: readonly Said[], turn: StartTurn): Promise<void> {
    const { signal } = this.#leave;
    const previous = this.#state.entries;
    let entry: Entry = { ...this.#entry(undefined, new TurnStore()), said };
    this.#set({
      phase: "ready",
      entries: [...before, entry],
      running: entry,
      failure: undefined,
      isStopping: false,
      // As the server will call it.
      title: this.#state.title || said.flatMap((part) => (part.type === "text" ? part.text : [])).join(" "),
    });
    try {
      const agent = this.#options.agent?.();
      const started = await this.#client.start(agent ? { ...turn, agent } : turn, { signal });
      if (signal.aborted) return;
      const taken: Entry = { ...entry, turnId: started.turn_id };
      this.#exchange(entry, taken);
      entry = taken;
      const id = started.conversation_id ?? undefined;
      if (id !== undefined && this.#state.id === undefined) {
        this.#set({ id });
        this.#options.onBegun?.(id);
      }
      await this.#follow(taken);
    } catch (error) {
      if (signal.aborted) return;
      // Nothing was begun: what was there is there, and what was said is in the composer again.
      this.#set({ entries: previous, running: undefined, failure: error });
      const busy = error instanceof ApiError && error.code === "conversation_busy";
      if (busy && this.#state.id !== undefined) await this.#load(this.#state.id);
      throw error;
    }
  }

  async #follow(entry: Entry): Promise<void> {
    const { signal } = this.#leave;
    const { turnId, store } = entry;
    if (turnId === undefined) return;
    this.#set({ running: entry, connection: { state: "connecting" } });
    const deaf = this.#options.listeners?.(turnId).map((listener) => store.listen(listener));
    const after = store.head().seq;
    try {
      const onConnection = (connection: Connection): void => {
        if (!signal.aborted) this.#set({ connection });
      };
      const events = this.#client.follow(turnId, { signal, onConnection, ...(after > 0 ? { after } : {}) });
      for await (const viewed of events) {
        store.take(viewed);
        if (viewed.type === "user_message") void this.#look(turnId);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#set({ failure: error });
    } finally {
      for (const stop of deaf ?? []) stop();
    }
    if (signal.aborted) return;
    const isAwaited = this.#state.waiting.length > 0;
    this.#set({ running: undefined, connection: undefined, isStopping: false, waiting: [] });
    this.#options.onEnd?.();
    await this.#goOn(turnId, isAwaited);
  }

  /** What waited for the end of a turn begins the next one by itself, a moment later. */
  async #goOn(ended: string, isAwaited: boolean): Promise<void> {
    const { id } = this.#state;
    const { signal } = this.#leave;
    if (id === undefined) return;
    await this.#try(async () => {
      for (const ms of isAwaited ? [0, ...NEXT_TURN_MS] : [0]) {
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
        const tree = signal.aborted ? undefined : await this.#tree(id);
        if (tree === undefined || this.#state.running !== undefined) return;
        const next = tree.running_turn_id ?? tree.leaf_id ?? undefined;
        if (next === undefined || next === ended) continue;
        // It may have ended already: then it is there as a whole.
        if (tree.running_turn_id == null) return await this.#load(id);
        const entry = this.#entry(next, new TurnStore());
        this.#set({ entries: [...this.#state.entries, entry] });
        return await this.#follow(entry);
      }
    });
  }

  /** What waits to be taken in. */
  async #look(turn_id: string): Promise<void> {
    try {
      const { messages } = await this.#client.call("GET /v1/turns/{turn_id}/messages", { path: { turn_id } });
      if (this.#state.running?.turnId === turn_id) this.#set({ waiting: messages });
    } catch {
      // A turn that has ended has nothing that waits.
    }
  }

  /** What was said in a turn, to be said again. Its pictures are files again. */
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
    return { key: String(this.#keys), turnId, store, said: undefined };
  }

  #exchange(old: Entry, entry: Entry): void {
    const entries = this.#state.entries.map((one) => (one === old ? entry : one));
    this.#set({ entries, running: this.#state.running === old ? entry : this.#state.running });
  }

  async #try(act: () => Promise<unknown>): Promise<void> {
    const { signal } = this.#leave;
    try {
      await act();
    } catch (error) {
      if (!signal.aborted) this.#set({ failure: error });
    }
  }

  #set(change: Partial<ConversationState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }
}
