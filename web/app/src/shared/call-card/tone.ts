// Status of a call as tone, label and icon. Framework-free.

import type { CallBlock } from "@throughline/client";
import type { Words } from "../../i18n/words.ts";

export type Tone = "writing" | "waiting" | "queued" | "running" | "good" | "bad" | "none";

export function toneOf(status: CallBlock["status"]): Tone {
  switch (status) {
    case "preparing":
      return "writing";
    case "awaiting_approval":
      return "waiting";
    case "queued":
      return "queued";
    case "running":
      return "running";
    case "success":
      return "good";
    case "error":
    case "timed_out":
    case "unknown":
      return "bad";
    case "denied":
    case "cancelled":
    case "not_started":
    case undefined:
      return "none";
  }
}

/** The part of a call that its display depends on. */
export interface State {
  readonly status?: CallBlock["status"];
  readonly error?: { readonly code: string };
}

/** Label of the status. A call with invalid arguments is shown as failed, whatever its status. */
export function statusWord(call: State, words: Words): string {
  if (call.error?.code === "invalid_arguments") return words.badArguments;
  if (call.error?.code === "unknown_tool") return words.unknownTool;
  return words.callStatus[call.status ?? "unknown"];
}

/** Like {@link toneOf}, but a call with invalid arguments has the tone of an error. */
export function callTone(call: State): Tone {
  const isMistake = call.error?.code === "invalid_arguments" || call.error?.code === "unknown_tool";
  return isMistake ? "bad" : toneOf(call.status);
}

/** Name of the tool. */
export function nameOf(call: Readonly<CallBlock>): string {
  return call.tool_name ?? "?";
}

/** Longest title in an approval, in characters. */
const TITLE_CHARS_MAX = 60;

/**
 * Name of the tool in an approval. The title comes from whoever provides the tool, so it never replaces the name, and
 * nothing in it can end its quotation; the server's texts do the same.
 */
export function approvalToolName(call: Readonly<CallBlock>, words: Words): string {
  const [name, source] = [nameOf(call), call.source ?? ""];
  const title = (call.title ?? "").trim().replace(/[“”„‟"＂«»]/g, "'");
  if (source === "") return name;
  if (title === "" || name === title || name.endsWith(`.${title}`)) return words.toolFrom(name, source);
  const chars = [...title];
  const shown = chars.length > TITLE_CHARS_MAX ? `${chars.slice(0, TITLE_CHARS_MAX).join("")}…` : title;
  return words.toolTitled(name, source, shown);
}

/** Arguments of a call: complete ones as a value, others as text. */
export function argumentsOf(call: Readonly<CallBlock>): unknown {
  return call.ran_with ?? call.arguments;
}

/** Progress of a running tool: `3 / 10 · Reading`, `40 % · Reading`. */
export function progressOf(progress: CallBlock["progress"]): string {
  const { progress: done, total, message } = progress ?? {};
  const isShare = total === 1 || total === 100;
  const share = isShare ? `${Math.round(((done ?? 0) / total) * 100)} %` : `${done} / ${total}`;
  const figure = done === undefined ? undefined : total == null ? String(done) : share;
  return [figure, message].filter(Boolean).join(" · ");
}
