// A turn as a page shows it: a message whose blocks can be subscribed to one by one. R: T1, T2, U6

import type { Block, Event, Message, ViewerEvent } from "../api.ts";
import type { CallBlock } from "./call.ts";
import { absorb, type Change, emptyMessage } from "./fold.ts";
import { everyFrame, Flusher, type Schedule } from "./frames.ts";

/** The message without its blocks. */
export type Head = Readonly<Omit<Message, "blocks">>;

/** What a list of blocks is laid out by; it changes when a block appears or a call goes on, never with a delta. */
export interface Place {
  readonly at: number;
  readonly kind: Block["kind"];
  readonly status?: CallBlock["status"];
  readonly tool?: string | undefined;
}

/** What a program wants to be told as it comes, beside what it draws. None is called for what a snapshot brings. */
export interface TurnListener {
  /** Visible text, as it comes. */
  onText?(delta: string, block: number): void;
  /** A tool call appears, and whenever its status is another one. */
  onToolCall?(call: Readonly<CallBlock>, block: number): void;
  /** Sound, as it comes. */
  onAudio?(chunk: AudioChunk, block: number): void;
}

/** A piece of sound. */
export interface AudioChunk {
  /** Base64. */
  data: string;
  format: string | undefined;
  sampleRate: number | undefined;
  transcript: string;
}

type Listener = () => void;

/** The blocks of one turn. Whatever it gives out is not changed later: a new value takes its place. */
export class TurnStore {
  #message: Message;
  #head: Head;
  #blocks: Readonly<Block>[];
  #outline: readonly Place[];
  readonly #dirty = new Set<number>();
  #isHeadDirty = false;
  #isOutlineDirty = false;
  readonly #flusher: Flusher;
  readonly #onBlock = new Map<number, Set<Listener>>();
  readonly #onHead = new Set<Listener>();
  readonly #onOutline = new Set<Listener>();
  readonly #listeners = new Set<TurnListener>();

  constructor(message: Message = emptyMessage(), schedule: Schedule = everyFrame()) {
    this.#message = structuredClone(message);
    this.#head = headOf(this.#message);
    this.#blocks = this.#message.blocks.map((block) => ({ ...block }));
    this.#outline = outlineOf(this.#message);
    this.#flusher = new Flusher(() => this.#flush(), schedule);
  }

  /** The message but for its blocks. */
  readonly head = (): Head => this.#head;
  /** Which blocks there are. */
  readonly outline = (): readonly Place[] => this.#outline;
  /** One block. */
  readonly block = (at: number): Readonly<Block> | undefined => this.#blocks[at];

  readonly subscribeHead = (listener: Listener): (() => void) => subscribe(this.#onHead, listener);
  readonly subscribeOutline = (listener: Listener): (() => void) => subscribe(this.#onOutline, listener);
  readonly subscribeBlock = (at: number, listener: Listener): (() => void) => {
    const listeners = this.#onBlock.get(at) ?? new Set();
    this.#onBlock.set(at, listeners);
    return subscribe(listeners, listener);
  };

  /** Tells a program of what comes. */
  listen(listener: TurnListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes what a viewer is told. What is there already changes nothing. */
  take(viewed: ViewerEvent): void {
    if (viewed.type === "snapshot" || viewed.type === "resync") return this.#replace(viewed.message);
    if (!("seq" in viewed)) {
      // In no log: the next event ends it.
      this.#message.waiting = { reason: viewed.reason };
      this.#isHeadDirty = true;
      return this.#news();
    }
    const before = this.#statusOf(viewed);
    const change = absorb(this.#message, viewed);
    if (change === undefined) return;
    this.#note(viewed, change, before);
    this.#tell(viewed, change, before);
    this.#news();
  }

  /** Takes all that comes, to its end. */
  async follow(events: AsyncIterable<ViewerEvent>): Promise<void> {
    for await (const viewed of events) this.take(viewed);
  }

  /** The message as it is, a copy. */
  message(): Message {
    return structuredClone(this.#message);
  }

  #replace(message: Message): void {
    this.#message = structuredClone(message);
    const count = Math.max(this.#blocks.length, this.#message.blocks.length);
    for (let at = 0; at < count; at += 1) this.#dirty.add(at);
    this.#isHeadDirty = true;
    this.#isOutlineDirty = true;
    this.#news();
  }

  #news(): void {
    this.#flusher.news(this.#isHeadDirty || this.#isOutlineDirty);
  }

  #statusOf(event: Event): CallBlock["status"] {
    if (!IS_OF_CALL.has(event.type)) return undefined;
    const call = this.#callOf(event);
    return call?.status;
  }

  #callOf(event: Event): CallBlock | undefined {
    const found = this.#message.blocks.findLast(
      (block) => block.kind === "tool_call" && block.tool_id === event.tool_id,
    );
    return found?.kind === "tool_call" ? found : undefined;
  }

  #note(event: Event, change: Change, before: CallBlock["status"]): void {
    if (change.block !== undefined) this.#dirty.add(change.block);
    for (const at of change.blocks ?? []) this.#dirty.add(at);
    switch (event.type) {
      case "content_delta":
      case "thinking":
      case "tool_input_delta":
      case "audio_delta":
        // With every one of these the head is the same but for its number; only the end of a wait is news.
        if (this.#head.waiting !== undefined) this.#isHeadDirty = true;
        return;
      default:
        this.#isHeadDirty = true;
    }
    const isPlaced = OPENS.has(event.type);
    if (isPlaced || (IS_OF_CALL.has(event.type) && this.#callOf(event)?.status !== before)) {
      this.#isOutlineDirty = true;
    }
  }

  #tell(event: Event, change: Change, before: CallBlock["status"]): void {
    if (this.#listeners.size === 0 || change.block === undefined) return;
    const at = change.block;
    const block = this.#message.blocks[at];
    for (const listener of this.#listeners) {
      if (event.type === "content_delta" && block?.kind === "text") listener.onText?.(event.text, at);
      if (event.type === "audio_delta" && block?.kind === "audio") {
        const { format, sample_rate: sampleRate } = block;
        listener.onAudio?.({ data: event.data, format, sampleRate, transcript: event.transcript ?? "" }, at);
      }
      if (block?.kind === "tool_call" && IS_OF_CALL.has(event.type) && block.status !== before) {
        listener.onToolCall?.({ ...block }, at);
      }
    }
  }

  #flush(): void {
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    this.#blocks.length = Math.min(this.#blocks.length, this.#message.blocks.length);
    for (const at of dirty) {
      const block = this.#message.blocks[at];
      if (block !== undefined) this.#blocks[at] = { ...block };
    }
    const tell: Set<Listener>[] = [];
    if (this.#isOutlineDirty) {
      this.#outline = outlineOf(this.#message);
      tell.push(this.#onOutline);
    }
    if (this.#isHeadDirty) {
      this.#head = headOf(this.#message);
      tell.push(this.#onHead);
    }
    this.#isOutlineDirty = false;
    this.#isHeadDirty = false;
    for (const at of dirty) tell.push(this.#onBlock.get(at) ?? new Set());
    for (const listeners of tell) for (const listener of listeners) listener();
  }
}

/** Events that put a block somewhere. */
const OPENS: ReadonlySet<Event["type"]> = new Set(["block_start", "tool_use", "user_message"]);
/** Events that may change the status of a call. */
const IS_OF_CALL: ReadonlySet<Event["type"]> = new Set([
  "tool_use",
  "tool_input",
  "tool_input_reset",
  "approval_request",
  "approval_resolved",
  "tool_redefined",
  "tool_start",
  "tool_result",
]);

function headOf(message: Message): Head {
  const { blocks: _, ...head } = message;
  return { ...head, usage: { ...head.usage }, problems: [...head.problems] };
}

function outlineOf(message: Message): readonly Place[] {
  return message.blocks.map((block, at) =>
    block.kind === "tool_call"
      ? { at, kind: block.kind, status: block.status, tool: block.tool_name }
      : { at, kind: block.kind },
  );
}

function subscribe(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
