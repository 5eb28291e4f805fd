// An address of somebody's own: what is said of it, and what follows from that. Framework-free.

import { ApiError } from "@throughline/client";

/** How upstreams are spoken to: as the API calls it, and as everybody does. */
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

export interface Own {
  readonly address: string;
  /** Absent = what the address suggests. */
  readonly name?: string;
  readonly dialect: string;
}

export const NOTHING: Own = { address: "", dialect: DIALECTS[0][0] };

/** As the server calls upstreams, at most. */
export const NAME_MAX = 64;

/** What it is called: `http://gpu-box:8000/v1` → `gpu-box-8000`, so that two ports of a machine are two names. */
export function nameOf({ name, address }: Own): string {
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

/** As the server is told. */
export interface Where {
  base_url: string;
  dialect: string;
}

export function whereOf({ address, dialect }: Own): Where {
  return { base_url: address.trim(), dialect };
}

/** Most who copy an address leave out the end of it: where nothing lists models, they are looked for behind `/v1`. */
export async function asked<T>(own: Own, ask: (where: Where) => Promise<T>): Promise<[Own, T]> {
  try {
    return [own, await ask(whereOf(own))];
  } catch (error) {
    const { base_url, dialect } = whereOf(own);
    const isWhole = !dialect.startsWith("openai") || /\/v\d\w*\/?$/.test(base_url);
    if (isWhole || !listsNothing(error)) throw error;
    const behind = { ...own, address: `${base_url.replace(/\/+$/, "")}/v1` };
    return [
      behind,
      await ask(whereOf(behind)).catch((another: unknown) => {
        // It is nothing there either: what was typed is what was meant.
        throw listsNothing(another) ? error : another;
      }),
    ];
  }
}

/** It answers, and does not say which models it has. */
export function listsNothing(error: unknown): boolean {
  return error instanceof ApiError && error.code === "model_needed";
}

/** What does the same in a terminal of the server's machine. */
export function commandOf(own: Own): string[] {
  const { base_url, dialect } = whereOf(own);
  const address = `'${base_url.replaceAll("'", "%27")}'`;
  return ["throughline", "connect", nameOf(own), "--base-url", address, "--api", dialect];
}
