// Applies events to one tool call.

import type { Block, Event } from "../api.ts";
import { assign, defined } from "./defined.ts";

/** A tool call with its outcome: one call, one card. */
export type CallBlock = Extract<Block, { kind: "tool_call" }>;

type Approval = NonNullable<CallBlock["approval"]>;
type Progress = NonNullable<CallBlock["progress"]>;
type CallEvent = Extract<
  Event,
  {
    type:
      | "tool_input_delta"
      | "tool_input_reset"
      | "tool_input"
      | "approval_request"
      | "approval_resolved"
      | "tool_redefined"
      | "tool_start"
      | "tool_progress"
      | "tool_result";
  }
>;

export function absorbCall(call: CallBlock, event: CallEvent): void {
  switch (event.type) {
    case "tool_input_delta":
      call.input_text = (call.input_text ?? "") + event.delta;
      if (event.input_summary !== undefined) {
        call.input_summary = event.input_summary;
      }
      return;
    case "tool_input_reset":
      call.input_text = "";
      delete call.arguments;
      delete call.ran_with;
      delete call.seal;
      delete call.approval;
      delete call.progress;
      call.output = "";
      call.status = "preparing";
      return;
    case "tool_input":
      assign(call, "arguments", event.arguments);
      assign(call, "raw", event.raw);
      assign(call, "problem", event.problem);
      assign(call, "seal", event.seal);
      call.input_summary = event.input_summary ?? "";
      call.status = "queued";
      return;
    case "approval_request":
      return ask(call, event);
    case "approval_resolved":
      return answer(call, event);
    case "tool_redefined":
      if ((call.status === "running" && event.attempt === call.attempts) || call.approval !== undefined) {
        delete call.approval;
        delete call.started_at;
        call.early = false;
        call.status = "queued";
      }
      return;
    case "tool_start":
      assign(call, "client_id", event.client_id);
      assign(call, "rule", event.rule);
      delete call.approval;
      delete call.progress;
      call.early = event.early;
      call.attempts = event.attempt;
      call.started_at = event.timestamp;
      call.output = "";
      call.status = "running";
      return;
    case "tool_progress":
      call.output = (call.output ?? "") + (event.output_delta ?? "");
      call.progress = defined<Progress>({
        progress: event.progress ?? call.progress?.progress,
        total: event.total ?? call.progress?.total,
        message: event.message ?? call.progress?.message,
        output_delta: undefined,
      });
      return;
    case "tool_result":
      call.ended_at = event.timestamp;
      return close(call, event);
  }
}

function ask(call: CallBlock, event: Extract<Event, { type: "approval_request" }>): void {
  // Kinds of later releases cannot be shown here.
  if (
    event.kind !== undefined &&
    event.kind !== null &&
    event.kind !== "elicitation" &&
    event.kind !== "call"
  )
    return;
  call.approval = defined<Approval>({
    approval_id: event.approval_id,
    question: event.question,
    rule: event.rule,
    expires_at: event.expires_at,
    arguments_text: event.arguments_text,
    arguments_hash: event.arguments_hash || undefined,
    fingerprint: event.fingerprint || undefined,
    kind: event.kind === "elicitation" ? event.kind : undefined,
    schema: event.schema,
    url: event.url,
  });
  call.status = "awaiting_approval";
}

function answer(call: CallBlock, event: Extract<Event, { type: "approval_resolved" }>): void {
  const approval = call.approval;
  if (approval === undefined || approval.approval_id !== event.approval_id) return;
  delete call.approval;
  if (event.arguments !== undefined && event.arguments !== null) call.ran_with = event.arguments;
  call.status = approval.kind === "elicitation" ? "running" : "queued";
}

function close(call: CallBlock, result: Extract<Event, { type: "tool_result" }>): void {
  call.status = result.status;
  call.output = result.output ?? "";
  call.output_summary = result.output_summary ?? "";
  assign(call, "output_value", result.output_value);
  assign(call, "output_media", result.output_media?.length ? result.output_media : undefined);
  assign(call, "output_size", result.output_size);
  assign(call, "error", result.error);
  assign(call, "rule", result.rule ?? call.rule);
  assign(call, "started_at", result.started_at);
  assign(call, "duration_ms", result.duration_ms);
  assign(call, "applied", result.applied);
  assign(call, "seen_by_model", result.seen_by_model);
  delete call.approval;
  delete call.progress;
}
