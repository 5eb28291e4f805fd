import type { ToolInfo } from "@throughline/client";
import { useCallback } from "react";
import { useClient } from "../session/context.tsx";
import { useAsked } from "../ui/asked.ts";
import { type Fate, fateOf } from "./model/passages.ts";

/** Nobody types faster than they want to be told. */
const WAIT_MS = 250;

/**
 * What would become of this call if a model made it: it is written down as a model would, and the server reads it as it reads
 * any reply. So there is no second opinion about rules.
 */
export function useOutlook(
  agent: string | undefined,
  tool: ToolInfo,
  value: Record<string, unknown> | undefined,
): { fate: Fate; why: string | undefined; rule: string | undefined } | undefined {
  const client = useClient();
  const text = value && asReply(tool.wire_name, value);
  const ask = useCallback(
    async (signal: AbortSignal) => {
      const body = { text: text ?? "", protocol: "xml", ...(agent === undefined ? {} : { agent }) } as const;
      return await client.call("POST /v1/parse", { body, signal });
    },
    [client, agent, text],
  );
  const { value: parsed, error } = useAsked(text === undefined ? undefined : ask, WAIT_MS);
  const request = parsed?.requests[0];
  if (text === undefined || parsed === undefined || error !== undefined || request === undefined)
    return undefined;
  return {
    fate: fateOf(request, parsed, text, true),
    why: request.why ?? undefined,
    rule: request.rule ?? undefined,
  };
}

/** No text in it can end it: its JSON has no `<`. */
export function asReply(wireName: string, value: Record<string, unknown>): string {
  const json = JSON.stringify({ name: wireName, arguments: value }).replaceAll("<", "\\u003c");
  return `<tool_call>\n${json}\n</tool_call>`;
}
