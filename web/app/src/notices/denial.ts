// A denial that was given on a notification. Framework-free.

import type { Throughline } from "@throughline/client";

/** Which question is meant. The answer holds only for the arguments that were asked about. */
export interface Denial {
  turnId: string;
  approvalId: string;
  argumentsHash?: string;
}

/** A message of the service worker, if it is one. */
export function denialIn(value: unknown): Denial | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { turnId, approvalId, argumentsHash } = value as Partial<Record<keyof Denial, unknown>>;
  if (typeof turnId !== "string" || typeof approvalId !== "string") return undefined;
  return { turnId, approvalId, ...(typeof argumentsHash === "string" ? { argumentsHash } : {}) };
}

/** Denies; throws what the server refuses. */
export async function deny(
  client: Throughline,
  { turnId, approvalId, argumentsHash }: Denial,
): Promise<void> {
  await client.call("POST /v1/turns/{turn_id}/approvals/{approval_id}", {
    path: { turn_id: turnId, approval_id: approvalId },
    body: { decision: "deny", ...(argumentsHash === undefined ? {} : { arguments_hash: argumentsHash }) },
  });
}
