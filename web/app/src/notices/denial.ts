// A denial from a notification's button. Framework-free.

import type { Throughline } from "@throughline/client";

/** The denied approval. The denial is valid only for the arguments of the approval. */
export interface Denial {
  turnId: string;
  approvalId: string;
  argumentsHash?: string;
}

/** The denial in a message of the service worker, if it is one. */
export function denialIn(value: unknown): Denial | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { turnId, approvalId, argumentsHash } = value as Partial<Record<keyof Denial, unknown>>;
  if (typeof turnId !== "string" || typeof approvalId !== "string") return undefined;
  return { turnId, approvalId, ...(typeof argumentsHash === "string" ? { argumentsHash } : {}) };
}

/** Sends the denial; throws what the server refuses. */
export async function deny(
  client: Throughline,
  { turnId, approvalId, argumentsHash }: Denial,
): Promise<void> {
  await client.call("POST /v1/turns/{turn_id}/approvals/{approval_id}", {
    path: { turn_id: turnId, approval_id: approvalId },
    body: { decision: "deny", ...(argumentsHash === undefined ? {} : { arguments_hash: argumentsHash }) },
  });
}
