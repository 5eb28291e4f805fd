// Timeline of a turn: its model calls, the tool calls of each, and the duration of each part. Framework-free.

import type { CallBlock, Event, Message } from "@throughline/client";

/** A span of a turn, in milliseconds since it began. A span that is still open ends at the last known time. */
export interface Stretch {
  kind: StretchKind;
  from: number;
  to: number;
}

/**
 * Kinds by the effect of a tool: reading, changing, or acting on other systems. `retry`: the pause before another request to a model,
 * and every further attempt of a tool.
 */
export type StretchKind = "waiting" | "model" | "retry" | "approval" | "reading" | "writing" | "acting";

export interface StoryCall {
  toolId: string;
  name: string;
  title: string | undefined;
  stretches: Stretch[];
}

export interface StoryStep {
  step: number;
  model: string;
  stretches: Stretch[];
  from: number;
  to: number;
  inputTokens: number | undefined;
  outputTokens: number | undefined;
  /** Finish reason of the model; `undefined` while it writes. */
  finish: string | undefined;
  calls: StoryCall[];
}

export interface Story {
  steps: StoryStep[];
  /** Length of all known time. */
  whole: number;
}

const CONTENT: ReadonlySet<Event["type"]> = new Set(["block_start", "content_delta", "thinking", "tool_use"]);

/** Builds the timeline. `until`: current time of a running turn. */
export function storyOf(events: readonly Event[], until = 0): Story {
  const begin = events[0]?.timestamp ?? 0;
  const whole = Math.max(events.at(-1)?.timestamp ?? begin, until) - begin;
  const steps = new Map<number, StoryStep>();
  const calls = new Map<string, StoryCall & { effect: string }>();
  const open = (list: Stretch[], kind: StretchKind, from: number): void =>
    void list.push({ kind, from, to: whole });
  const close = (list: Stretch[] | undefined, to: number): void => {
    const last = list?.at(-1);
    if (last !== undefined && last.to === whole) last.to = to;
  };
  for (const event of events) {
    const at = event.timestamp - begin;
    const step = event.step === undefined ? undefined : steps.get(event.step);
    const call = event.tool_id === undefined ? undefined : calls.get(event.tool_id);
    if (step?.stretches.at(-1)?.kind === "waiting" && CONTENT.has(event.type) && step.finish === undefined) {
      close(step.stretches, at);
      open(step.stretches, "model", at);
    }
    switch (event.type) {
      case "step_start": {
        const number = event.step ?? steps.size + 1;
        const again = steps.get(number);
        if (again !== undefined) {
          // Another attempt, perhaps with another model.
          close(again.stretches, at);
          again.model = event.model;
          open(again.stretches, "waiting", at);
          break;
        }
        const made: StoryStep = {
          step: number,
          model: event.model,
          stretches: [],
          from: at,
          to: whole,
          inputTokens: undefined,
          outputTokens: undefined,
          finish: undefined,
          calls: [],
        };
        open(made.stretches, "waiting", at);
        steps.set(number, made);
        break;
      }
      case "waiting": {
        const paused = step ?? [...steps.values()].at(-1);
        if (paused === undefined || paused.finish !== undefined) break;
        if (event.reason !== "retry" && event.reason !== "rate_limit") break;
        close(paused.stretches, at);
        open(paused.stretches, "retry", at);
        break;
      }
      case "step_end":
        if (step === undefined) break;
        close(step.stretches, at);
        step.to = at;
        step.finish = event.finish ?? "other";
        step.inputTokens = event.usage?.input_tokens ?? undefined;
        step.outputTokens = event.usage?.output_tokens ?? undefined;
        break;
      case "tool_use": {
        if (event.tool_id === undefined) break;
        const { tool_name: name, effect, title } = event;
        const made = { toolId: event.tool_id, name, title: title ?? undefined, effect, stretches: [] };
        calls.set(event.tool_id, made);
        (step ?? [...steps.values()].at(-1))?.calls.push(made);
        break;
      }
      case "approval_request":
        if (call === undefined) break;
        close(call.stretches, at);
        open(call.stretches, "approval", at);
        break;
      case "approval_resolved": {
        if (call === undefined) break;
        const running = call.stretches.findLast(({ kind }) => kind !== "approval")?.kind;
        close(call.stretches, at);
        // An elicitation runs as part of its tool.
        if (running !== undefined) open(call.stretches, running, at);
        break;
      }
      case "tool_start":
        if (call === undefined) break;
        close(call.stretches, at);
        open(call.stretches, event.attempt > 1 ? "retry" : toolKind(call.effect), at);
        break;
      case "tool_result":
        close(call?.stretches, at);
        break;
      case "stream_end":
        for (const { stretches } of [...steps.values(), ...calls.values()]) close(stretches, at);
        break;
      default:
        break;
    }
  }
  return { steps: [...steps.values()], whole };
}

function toolKind(effect: string): StretchKind {
  if (effect === "external") return "acting";
  return effect === "write" || effect === "idempotent" ? "writing" : "reading";
}

/** Duration from the first span to the end of the last one. */
export function lengthOf(stretches: readonly Stretch[]): number {
  const [first, last] = [stretches[0], stretches.at(-1)];
  return first === undefined || last === undefined ? 0 : last.to - first.from;
}

/** Calls of a message by id. */
export function callsOf(message: Pick<Message, "blocks">): ReadonlyMap<string, CallBlock> {
  const calls = message.blocks.filter((block): block is CallBlock => block.kind === "tool_call");
  return new Map(calls.flatMap((call) => (call.tool_id === undefined ? [] : [[call.tool_id, call]])));
}
