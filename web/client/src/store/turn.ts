// A turn for a page: a message whose blocks can be subscribed to one by one.

import type { Block, Event, Message, ViewerEvent } from "../api.ts";
import { Follow } from "../follow.ts";
import type { CallBlock } from "./call.ts";
import { absorb, type BlockChange, emptyMessage } from "./fold.ts";
import { everyFrame, Flusher, type FlushSchedule } from "./frames.ts";

/** The message without its blocks. */
export type MessageHead = Readonly<Omit<Message, "blocks">>;

/** Position of a block in the layout. It changes when a block appears or a call changes its status, never with a delta. */
export interface BlockPosition {
  readonly at: number;
  readonly kind: Block["kind"];
  readonly status?: CallBlock["status"];
  readonly tool?: string | undefined;
}

/** Callbacks for events as they arrive, independent of drawing. Snapshots trigger none. */
export interface TurnListener {
  /** Visible text, as it arrives. */
  onText?(delta: string, block: number): void;
  /** A tool call appears or changes its status. */
  onToolCall?(call: Readonly<CallBlock>, block: number): void;
  /** Audio, as it arrives. */
  onAudio?(chunk: AudioChunk, block: number): void;
}

/** A piece of audio. */
export interface AudioChunk {
  /** Base64. */
  data: string;
  format: string | undefined;
  sampleRate: number | undefined;
  transcript: string;
}

type Listener = () => void;

/** The blocks of one turn. Returned values never change later; new values replace them. */
export class TurnStore {
  #message: Message;
  #head: MessageHead;
  #blocks: Readonly<Block>[];
  #outline: readonly BlockPosition[];
  readonly #dirty = new Set<number>();
  #isHeadDirty = false;
  #isOutlineDirty = false;
  readonly #flusher: Flusher;
  readonly #onBlock = new Map<number, Set<Listener>>();
  readonly #onHead = new Set<Listener>();
  readonly #onOutline = new Set<Listener>();
  readonly #listeners = new Set<TurnListener>();

  constructor(message: Message = emptyMessage(), schedule: FlushSchedule = everyFrame()) {
    this.#message = structuredClone(message);
    this.#head = headOf(this.#message);
    this.#blocks = this.#message.blocks.map((block) => ({ ...block }));
    this.#outline = outlineOf(this.#message);
    this.#flusher = new Flusher(() => this.#flush(), schedule);
  }

  /** The message without its blocks. */
  readonly head = (): MessageHead => this.#head;
  /** The positions of all blocks. */
  readonly outline = (): readonly BlockPosition[] => this.#outline;
  /** One block. */
  readonly block = (at: number): Readonly<Block> | undefined => this.#blocks[at];

  readonly subscribeHead = (listener: Listener): (() => void) => subscribe(this.#onHead, listener);
  readonly subscribeOutline = (listener: Listener): (() => void) => subscribe(this.#onOutline, listener);
  readonly subscribeBlock = (at: number, listener: Listener): (() => void) => {
    const listeners = this.#onBlock.get(at) ?? new Set();
    this.#onBlock.set(at, listeners);
    return subscribe(listeners, listener);
  };

  /** Registers callbacks; returns a function that removes them. */
  listen(listener: TurnListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Applies a viewer's event. A repeated event changes nothing. */
  take(viewed: ViewerEvent): void {
    if (viewed.type === "snapshot" || viewed.type === "resync") return this.#replace(viewed.message);
    if (!("seq" in viewed)) {
      // Not in the log: the next event ends it.
      this.#message.waiting = { reason: viewed.reason };
      this.#isHeadDirty = true;
      return this.#changed();
    }
    const before = this.#statusOf(viewed);
    const change = absorb(this.#message, viewed);
    if (change === undefined) return;
    this.#note(viewed, change, before);
    this.#notify(viewed, change, before);
    this.#changed();
  }

  /** Applies all events up to the end; of a {@link Follow}, in the batches in which they arrive. */
  async follow(events: AsyncIterable<ViewerEvent>): Promise<void> {
    if (events instanceof Follow) {
      for await (const batch of events.batches()) for (const viewed of batch) this.take(viewed);
    } else for await (const viewed of events) this.take(viewed);
  }

  /** A copy of the current message. */
  message(): Message {
    return structuredClone(this.#message);
  }

  #replace(message: Message): void {
    this.#message = structuredClone(message);
    const count = Math.max(this.#blocks.length, this.#message.blocks.length);
    for (let at = 0; at < count; at += 1) this.#dirty.add(at);
    this.#isHeadDirty = true;
    this.#isOutlineDirty = true;
    this.#changed();
  }

  #changed(): void {
    this.#flusher.add(this.#isHeadDirty || this.#isOutlineDirty);
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

  #note(event: Event, change: BlockChange, before: CallBlock["status"]): void {
    if (change.block !== undefined) this.#dirty.add(change.block);
    for (const at of change.blocks ?? []) this.#dirty.add(at);
    switch (event.type) {
      case "content_delta":
      case "thinking":
      case "tool_input_delta":
      case "audio_delta":
        // These change nothing of the head but its number and the end of a wait.
        if (this.#head.waiting !== undefined) this.#isHeadDirty = true;
        return;
      default:
        this.#isHeadDirty = true;
    }
    const opensBlock = OPENS.has(event.type);
    if (opensBlock || (IS_OF_CALL.has(event.type) && this.#callOf(event)?.status !== before)) {
      this.#isOutlineDirty = true;
    }
  }

  #notify(event: Event, change: BlockChange, before: CallBlock["status"]): void {
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
    const changed: Set<Listener>[] = [];
    if (this.#isOutlineDirty) {
      this.#outline = outlineOf(this.#message);
      changed.push(this.#onOutline);
    }
    if (this.#isHeadDirty) {
      this.#head = headOf(this.#message);
      changed.push(this.#onHead);
    }
    this.#isOutlineDirty = false;
    this.#isHeadDirty = false;
    for (const at of dirty) changed.push(this.#onBlock.get(at) ?? new Set());
    for (const listeners of changed) for (const listener of listeners) listener();
  }
}

/** Events that open a block. */
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

function headOf(message: Message): MessageHead {
  const { blocks: _, ...head } = message;
  return { ...head, usage: { ...head.usage }, problems: [...head.problems] };
}

function outlineOf(message: Message): readonly BlockPosition[] {
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
