// Folds events to the message, like `crates/engine/src/fold.rs`. `specs/vectors` contains logs with their messages; both folds are
// tested against them.

import type { Block, Event, Message } from "../api.ts";
import { absorbCall, type CallBlock } from "./call.ts";
import { assign, defined } from "./defined.ts";

/** The blocks that an event has changed. */
export interface BlockChange {
  /** Index of a block of the message; `undefined`: none. */
  block?: number | undefined;
  /** Several blocks: the end of a step decides for its calls whether the model sees their results. */
  blocks?: readonly number[];
}

const NOTHING: BlockChange = {};

/** A message before its first event. */
export function emptyMessage(): Message {
  return {
    seq: 0,
    turn_id: "",
    message_id: "",
    agent: "",
    mode: "",
    input: [],
    started_at: 0,
    blocks: [],
    step: 0,
    model: "",
    usage: {},
    problems: [],
  };
}

/**
 * Applies the next event to the message. An event that is already in it (its `seq` is not higher) changes nothing and returns
 * `undefined`.
 */
export function absorb(message: Message, event: Event): BlockChange | undefined {
  if (event.seq <= message.seq) return undefined;
  message.seq = event.seq;
  if (!isKnown(event)) return NOTHING;
  if (event.type === "waiting") {
    message.waiting = defined({ reason: event.reason, since: event.since, until: event.until });
    return NOTHING;
  }
  delete message.waiting;
  switch (event.type) {
    case "stream_start":
      message.turn_id = event.turn_id;
      if (event.conversation_id != null) message.conversation_id = event.conversation_id;
      else delete message.conversation_id;
      message.message_id = event.message_id;
      message.agent = event.agent;
      message.mode = event.mode;
      message.input = event.input;
      message.started_at = event.timestamp;
      return NOTHING;
    case "step_start":
      message.step = event.step ?? message.step;
      message.model = event.model;
      return NOTHING;
    case "step_end":
      return endStep(message, event);
    case "block_start":
      return putBlock(message, event.block, opened(message, event));
    case "user_message":
      return putBlock(
        message,
        event.block,
        defined<Block>({ kind: "user_message", id: event.id, input: event.input }),
      );
    case "problem":
      message.problems.push(
        defined<Message["problems"][number]>({
          code: event.code,
          excerpt: event.excerpt ?? "",
          remedy: event.remedy,
          tool_id: event.tool_id,
        }),
      );
      return NOTHING;
    case "session_stats":
      message.stats = defined<NonNullable<Message["stats"]>>({
        steps: event.steps,
        calls: event.calls,
        usage: event.usage,
        wall_ms: event.wall_ms,
        first_content_ms: event.first_content_ms,
        saved_by_eager_ms: event.saved_by_eager_ms,
        segments: event.segments,
      });
      return NOTHING;
    case "error":
      message.error = faultOf(event);
      return NOTHING;
    case "stream_end":
      message.status = event.status;
      message.ended_at = event.timestamp;
      return NOTHING;
    case "tool_use":
      return openCall(message, event);
    case "content_delta":
    case "thinking":
    case "citation":
    case "audio_delta":
    case "block_end":
    case "block_superseded":
      return absorbInto(message, event);
    case "turn_resumed":
    // For the model only: viewers get it without its text.
    case "model_text":
      return NOTHING;
    default: {
      const at = indexOfCall(message, event.tool_id);
      const call = at === undefined ? undefined : message.blocks[at];
      if (call?.kind === "tool_call") absorbCall(call, event);
      return { block: at };
    }
  }
}

/** Types of this release. Events of later releases change nothing. */
const KNOWN: { readonly [T in Event["type"]]: true } = {
  stream_start: true,
  step_start: true,
  step_end: true,
  block_start: true,
  block_end: true,
  content_delta: true,
  model_text: true,
  thinking: true,
  citation: true,
  tool_use: true,
  tool_input_delta: true,
  tool_input_reset: true,
  tool_input: true,
  approval_request: true,
  approval_resolved: true,
  tool_redefined: true,
  tool_start: true,
  tool_progress: true,
  tool_result: true,
  audio_delta: true,
  user_message: true,
  waiting: true,
  problem: true,
  session_stats: true,
  error: true,
  turn_resumed: true,
  block_superseded: true,
  stream_end: true,
};

function isKnown(event: Event): boolean {
  return Object.hasOwn(KNOWN, event.type);
}

type EventOf<T extends Event["type"]> = Extract<Event, { type: T }>;

/** Finish reasons that commit the step. */
const COMMITS: ReadonlySet<string | undefined> = new Set(["stop", "tool_calls", "pause"]);

function endStep(message: Message, event: EventOf<"step_end">): BlockChange {
  if (event.usage) addUsage(message, event.usage);
  // Now it is known whether early results count.
  const isSeen = (COMMITS.has(event.finish) && message.error === undefined) || message.stopped === true;
  const step = event.step ?? message.step;
  const blocks: number[] = [];
  message.blocks.forEach((block, at) => {
    if (block.kind !== "tool_call" || block.step !== step) return;
    if (block.seen_by_model !== undefined || !isFinal(block.status)) return;
    block.seen_by_model = isSeen;
    blocks.push(at);
  });
  return { blocks };
}

/** Fields of usage; a missing one does not compile. */
const COUNTS: { readonly [name in keyof Message["usage"]]-?: true } = {
  input_tokens: true,
  output_tokens: true,
  cached_input_tokens: true,
  cache_written_tokens: true,
  reasoning_tokens: true,
};

function addUsage(message: Message, step: Message["usage"]): void {
  for (const name of Object.keys(COUNTS) as (keyof typeof COUNTS)[]) {
    const tokens = step[name];
    if (tokens != null) message.usage[name] = (message.usage[name] ?? 0) + tokens;
  }
}

/** True if no further event will change a call. */
export function isFinal(status: CallBlock["status"]): boolean {
  return (
    status !== undefined &&
    status !== "preparing" &&
    status !== "queued" &&
    status !== "awaiting_approval" &&
    status !== "running"
  );
}

/** Indexes are dense, so this appends; a gap can only come from another log. */
function putBlock(message: Message, at: number | undefined, block: Block): BlockChange {
  if (at !== undefined && at !== null && at < message.blocks.length) {
    message.blocks[at] = block;
    return { block: at };
  }
  message.blocks.push(block);
  return { block: message.blocks.length - 1 };
}

function opened(message: Message, start: EventOf<"block_start">): Block {
  switch (start.kind) {
    case "text":
      return defined<Block>({
        kind: "text",
        text: "",
        state: "open",
        code: start.code,
        citations: undefined,
      });
    case "thinking":
      return { kind: "thinking", text: "", state: "open" };
    case "audio":
      return { kind: "audio", data: [], transcript: "", state: "open" };
    case "image":
      return defined<Block>({
        kind: "image",
        media_type: start.media_type ?? "",
        data: start.data,
        file_id: start.file_id,
        bytes: start.bytes,
        url: start.url,
      });
    case "notice":
      if (start.code === "stopped") message.stopped = true;
      return { kind: "notice", code: start.code ?? "", text: start.text ?? "" };
    case "error":
      return { kind: "error", ...faultOf(start) };
    default:
      // A block of a later release. It keeps the indexes of the other blocks right.
      return { kind: "unrecognised" };
  }
}

type Fault = NonNullable<Message["error"]>;

function faultOf({ code, what, why, remedy, retryable, status, retry_after_ms }: Partial<Fault>): Fault {
  return defined<Fault>({
    code: code ?? "",
    what: what ?? "",
    why: why ?? "",
    remedy: remedy ?? "",
    retryable: retryable ?? false,
    status,
    retry_after_ms,
  });
}

function openCall(message: Message, event: EventOf<"tool_use">): BlockChange {
  const blocks: number[] = [];
  const old = indexOfCall(message, event.supersedes);
  const superseded = old === undefined ? undefined : message.blocks[old];
  if (old !== undefined && superseded?.kind === "tool_call") {
    superseded.seen_by_model = false;
    blocks.push(old);
  }
  const call: CallBlock = {
    kind: "tool_call",
    step: event.step ?? message.step,
    tool_name: event.tool_name,
    title: event.title ?? "",
    source: event.source ?? "",
    effect: event.effect,
    status: event.status,
    input_summary: event.input_summary ?? "",
    input_text: "",
    early: false,
    attempts: 0,
    output: "",
    output_summary: "",
  };
  assign(call, "tool_id", event.tool_id);
  return { ...putBlock(message, event.block, call), blocks };
}

function indexOfCall(message: Message, id: string | undefined): number | undefined {
  if (id == null) return undefined;
  const at = message.blocks.findLastIndex((block) => block.kind === "tool_call" && block.tool_id === id);
  return at < 0 ? undefined : at;
}

type BlockEvent = EventOf<
  "content_delta" | "thinking" | "citation" | "audio_delta" | "block_end" | "block_superseded"
>;

function absorbInto(message: Message, event: BlockEvent): BlockChange {
  const at = event.block;
  const block = at === undefined ? undefined : message.blocks[at];
  if (block === undefined) return NOTHING;
  if (block.kind === "text" && event.type === "content_delta") block.text += event.text;
  else if (block.kind === "thinking" && event.type === "thinking") block.text += event.text;
  else if (block.kind === "text" && event.type === "citation") {
    block.citations = [...(block.citations ?? []), event.source];
  } else if (block.kind === "audio") absorbSound(block, event);
  else if (block.kind === "text" || block.kind === "thinking") {
    if (event.type === "block_end") block.state = "closed";
    if (event.type === "block_superseded") block.text = firstChars(block.text, event.keep_chars);
  }
  return { block: at };
}

function absorbSound(block: Extract<Block, { kind: "audio" }>, event: BlockEvent): void {
  switch (event.type) {
    case "audio_delta":
      block.data.push(event.data);
      block.transcript += event.transcript ?? "";
      if (block.format === undefined && event.format != null) block.format = event.format;
      if (block.sample_rate === undefined && event.sample_rate != null) block.sample_rate = event.sample_rate;
      return;
    case "block_end":
      block.state = "closed";
      return;
    case "block_superseded":
      // Audio cannot be cut by characters: it is kept or dropped.
      if (event.keep_chars === 0) {
        block.data = [];
        block.transcript = "";
      }
      return;
    default:
      return;
  }
}

/** Characters are Unicode scalar values, as on the server. */
function firstChars(text: string, count: number): string {
  let at = 0;
  for (let chars = 0; chars < count && at < text.length; chars += 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(0, at);
}
