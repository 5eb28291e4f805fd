import type { ToolInfo } from "@throughline/client";
import { useCallback } from "react";
import { useClient } from "../session/context.tsx";
import type { Outlook } from "../shared/outlook.ts";
import { useRequest } from "../ui/use-request.ts";
import { outlookOf } from "./model/passages.ts";

/** Pause after the last keystroke before a request. */
const WAIT_MS = 250;

/**
 * Outcome of this call if a model made it: it is written as a reply, which the server parses like any other, so that the rules
 * exist only once.
 */
export function useOutlook(
  agent: string | undefined,
  tool: ToolInfo,
  value: Record<string, unknown> | undefined,
): { outlook: Outlook; why: string | undefined; rule: string | undefined } | undefined {
  const client = useClient();
  const text = value && asReply(tool.wire_name, value);
  const ask = useCallback(
    async (signal: AbortSignal) => {
      const body = { text: text ?? "", protocol: "xml", ...(agent === undefined ? {} : { agent }) } as const;
      return await client.call("POST /v1/parse", { body, signal });
    },
    [client, agent, text],
  );
  const { value: parsed, error } = useRequest(text === undefined ? undefined : ask, WAIT_MS);
  const request = parsed?.requests[0];
  if (text === undefined || parsed === undefined || error !== undefined || request === undefined)
    return undefined;
  return {
    outlook: outlookOf(request, parsed, text, true),
    why: request.why ?? undefined,
    rule: request.rule ?? undefined,
  };
}

/** The call as a reply in text mode. Its JSON has no `<`, so nothing can end it early. */
export function asReply(wireName: string, value: Record<string, unknown>): string {
  const json = JSON.stringify({ name: wireName, arguments: value }).replaceAll("<", "\\u003c");
  return `<tool_call>\n${json}\n</tool_call>`;
}
