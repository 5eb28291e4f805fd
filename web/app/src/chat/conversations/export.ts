// A conversation as a file: written by the server, or rendered by the page. The former is framework-free.

import type { ConversationInfo, Throughline } from "@throughline/client";

const TYPES = {
  markdown: ["text/markdown", "md"],
  jsonl: ["application/jsonl", "jsonl"],
  html: ["text/html", "html"],
} as const;

/** The fields of a conversation that an export uses. */
export type Exported = Pick<ConversationInfo, "id" | "title">;

/** Downloads the conversation under its title. */
export async function exportConversation(
  client: Throughline,
  conversation: Exported,
  format: keyof typeof TYPES,
  untitled: string,
): Promise<void> {
  const [type, ending] = TYPES[format];
  const text =
    format === "html" ? await drawn(client, conversation) : await written(client, conversation.id, format);
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${fileName(conversation.title || untitled)}.${ending}`;
  link.click();
  // Some browsers begin to read the file a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

async function written(client: Throughline, id: string, format: "markdown" | "jsonl"): Promise<string> {
  return await client.call("GET /v1/conversations/{conversation_id}/export", {
    path: { conversation_id: id },
    query: { format },
  });
}

async function drawn(client: Throughline, conversation: Exported): Promise<string> {
  const { documentOf } = await import("../../sharing/document.tsx");
  return await documentOf(client, conversation);
}

const NAME_CHARS_MAX = 80;

/** A title as a file name for every system. */
export function fileName(title: string): string {
  const name = title.replace(/[\p{C}\\/:*?"<>|]+/gu, " ").trim();
  return Array.from(name).slice(0, NAME_CHARS_MAX).join("").replace(/^\.+/, "").trim() || "conversation";
}
