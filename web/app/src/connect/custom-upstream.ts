// A custom upstream: its typed fields, and the values derived from them. Framework-free.

import { ApiError } from "@throughline/client";

/** APIs of upstreams: the server's names and the usual ones. */
export const DIALECTS = [
  ["openai-chat", "OpenAI Chat Completions"],
  ["openai-responses", "OpenAI Responses"],
  ["anthropic", "Anthropic Messages"],
  ["gemini", "Gemini"],
  ["ollama", "Ollama"],
  ["cohere", "Cohere v2"],
  ["bedrock-converse", "Bedrock Converse"],
  ["bedrock-anthropic", "Bedrock InvokeModel (Anthropic)"],
] as const;

export interface CustomUpstream {
  readonly address: string;
  /** Name of the upstream; absent = derived from the address. */
  readonly name?: string;
  readonly dialect: string;
}

export const NOTHING: CustomUpstream = { address: "", dialect: DIALECTS[0][0] };

/** Maximum length of a name on the server. */
export const NAME_MAX = 64;

/** Name from an address: `http://gpu-box:8000/v1` → `gpu-box-8000`, so that two ports of a machine have two names. */
export function nameOf({ name, address }: CustomUpstream): string {
  if (name !== undefined) return name.trim();
  let url: URL;
  try {
    url = new URL(address.trim());
  } catch {
    return "";
  }
  const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  const host = isHere ? "local" : url.hostname.replace(/[^\w.]+/g, "-").replace(/^-|-$/g, "");
  return [host, url.port].filter(Boolean).join("-").slice(0, NAME_MAX);
}

/** The upstream as the server takes it. */
export interface UpstreamAddress {
  base_url: string;
  dialect: string;
}

export function addressOf({ address, dialect }: CustomUpstream): UpstreamAddress {
  return { base_url: address.trim(), dialect };
}

/** Copied addresses often lack their end: if nothing lists models there, `/v1` is tried. */
export async function withV1Fallback<T>(
  upstream: CustomUpstream,
  ask: (target: UpstreamAddress) => Promise<T>,
): Promise<[CustomUpstream, T]> {
  try {
    return [upstream, await ask(addressOf(upstream))];
  } catch (error) {
    const { base_url, dialect } = addressOf(upstream);
    const isWhole = !dialect.startsWith("openai") || /\/v\d\w*\/?$/.test(base_url);
    if (isWhole || !listsNothing(error)) throw error;
    const fallback = { ...upstream, address: `${base_url.replace(/\/+$/, "")}/v1` };
    return [
      fallback,
      await ask(addressOf(fallback)).catch((another: unknown) => {
        // Neither address works: the typed one was meant.
        throw listsNothing(another) ? error : another;
      }),
    ];
  }
}

/** True if the upstream works but does not list its models. */
export function listsNothing(error: unknown): boolean {
  return error instanceof ApiError && error.code === "model_needed";
}

/** The equivalent command for a terminal on the server's machine. */
export function commandOf(upstream: CustomUpstream): string[] {
  const { base_url, dialect } = addressOf(upstream);
  const address = `'${base_url.replaceAll("'", "%27")}'`;
  return ["throughline", "connect", nameOf(upstream), "--base-url", address, "--api", dialect];
}
