// How a call looks: the one table from its status to knot, pill and words. Framework-free.

import type { CallBlock } from "@throughline/client";
import type { Words } from "../../i18n/words.ts";

export type Look = "writing" | "waiting" | "queued" | "running" | "good" | "bad" | "none";

export function lookOf(status: CallBlock["status"]): Look {
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

/** As much of a call as its looks depend on. */
export interface State {
  readonly status?: CallBlock["status"];
  readonly error?: { readonly code: string };
}

/** The word on the pill. What could not run since it was wrong has failed, whatever its status is called. */
export function statusWord(call: State, words: Words): string {
  if (call.error?.code === "invalid_arguments") return words.badArguments;
  if (call.error?.code === "unknown_tool") return words.unknownTool;
  return words.callStatus[call.status ?? "unknown"];
}

/** As {@link lookOf}, but what was refused for its own mistakes looks like one. */
export function callLook(call: State): Look {
  const isMistake = call.error?.code === "invalid_arguments" || call.error?.code === "unknown_tool";
  return isMistake ? "bad" : lookOf(call.status);
}

/** The tool's name. */
export function nameOf(call: Readonly<CallBlock>): string {
  return call.tool_name ?? "?";
}

/** Longest title in a question, in characters. */
const TITLE_CHARS_MAX = 60;

/**
 * The tool as people are asked about it. A title comes from whoever offers the tool, so it never stands for the name, and
 * nothing in it ends its quotation; the server's questions read alike.
 */
export function askedTool(call: Readonly<CallBlock>, words: Words): string {
  const [name, source] = [nameOf(call), call.source ?? ""];
  const title = (call.title ?? "").trim().replace(/[“”„‟"＂«»]/g, "'");
  if (source === "") return name;
  if (title === "" || name === title || name.endsWith(`.${title}`)) return words.toolFrom(name, source);
  const chars = [...title];
  const shown = chars.length > TITLE_CHARS_MAX ? `${chars.slice(0, TITLE_CHARS_MAX).join("")}…` : title;
  return words.toolTitled(name, source, shown);
}

/** What the arguments are: final ones as a value, others as they stand. */
export function argumentsOf(call: Readonly<CallBlock>): unknown {
  return call.ran_with ?? call.arguments;
}

/** `3 / 10 · Reading`, `40 % · Reading`: as far as a tool that runs has told. */
export function progressOf(progress: CallBlock["progress"]): string {
  const { progress: done, total, message } = progress ?? {};
  const isShare = total === 1 || total === 100;
  const share = isShare ? `${Math.round(((done ?? 0) / total) * 100)} %` : `${done} / ${total}`;
  const figure = done === undefined ? undefined : total == null ? String(done) : share;
  return [figure, message].filter(Boolean).join(" · ");
}
