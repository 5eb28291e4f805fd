// The status line of a turn. Framework-free.

import type { BlockPosition, ConnectionState, MessageHead } from "@throughline/client";

export type Status =
  | { kind: "idle" }
  | { kind: "connecting" }
  /** Sent, and not on the server yet. */
  | { kind: "unsent" }
  | { kind: "reconnecting" }
  | { kind: "waiting_for_model"; since?: number | undefined }
  /** The client that runs the next tool is not connected. */
  | { kind: "waiting_for_client"; until: number | undefined }
  /** The model has paused in the middle of its answer. */
  | { kind: "silent"; since: number | undefined }
  | { kind: "retrying"; reason: string; until: number | undefined }
  | { kind: "thinking" }
  | { kind: "writing" }
  | { kind: "arguments" }
  | { kind: "running"; count: number }
  | { kind: "needs_you"; count: number }
  | { kind: "stopping" };

export interface Seen {
  isRunning: boolean;
  isStopping: boolean;
  /** The server has accepted the turn. */
  isTaken: boolean;
  connection: ConnectionState | undefined;
  head: MessageHead;
  outline: readonly BlockPosition[];
}

export function statusOf({ isRunning, isStopping, isTaken, connection, head, outline }: Seen): Status {
  if (!isRunning) return { kind: "idle" };
  if (isStopping) return { kind: "stopping" };
  if (connection?.state === "waiting") return { kind: isTaken ? "reconnecting" : "unsent" };
  if (!isTaken) return { kind: "connecting" };
  const asking = outline.filter((position) => position.status === "awaiting_approval").length;
  if (asking > 0) return { kind: "needs_you", count: asking };
  const running = outline.filter((position) => position.status === "running").length;
  if (running > 0) return { kind: "running", count: running };
  const { waiting } = head;
  switch (waiting?.reason) {
    case undefined:
      break;
    case "first_byte":
      return { kind: "waiting_for_model", since: waiting.since };
    case "client":
      return { kind: "waiting_for_client", until: waiting.until };
    case "silence":
      return { kind: "silent", since: waiting.since };
    case "rate_limit":
    case "retry":
    case "store":
      return { kind: "retrying", reason: waiting.reason, until: waiting.until };
  }
  const last = outline.at(-1);
  if (last === undefined) return { kind: "waiting_for_model" };
  if (last.kind === "thinking") return { kind: "thinking" };
  if (last.kind === "tool_call")
    return { kind: last.status === "preparing" ? "arguments" : "waiting_for_model" };
  return { kind: "writing" };
}
