// Checks of types: each line below `@ts-expect-error` must not compile.

import { ApiError, type Event, type Message, Throughline, type ViewerEvent } from "@throughline/client";

export async function calls(server: Throughline): Promise<void> {
  const started = await server.call("POST /v1/turns", {
    body: { input: [{ type: "text", text: "Hello" }] },
    idempotencyKey: "k",
  });
  const id: string = started.turn_id;
  const { message } = await server.call("GET /v1/turns/{turn_id}", { path: { turn_id: id } });
  const whole: Message = message;
  for (const block of whole.blocks) {
    if (block.kind === "text") block.text.trim();
    // @ts-expect-error only text and thinking blocks have a text
    block.text.trim();
  }
  await server.call("GET /v1/tools");
  await server.call("GET /v1/tools", { query: { agent: "a" }, signal: AbortSignal.timeout(1) });
  const nothing: undefined = await server.call("DELETE /v1/files/{file_id}", { path: { file_id: id } });
  const file: Blob = await server.call("GET /v1/files/{file_id}/content", { path: { file_id: id } });
  await server.call("POST /v1/files", { body: file, query: { name: "a.txt" } });
  const lines: string = await server.call("GET /v1/history/export", { query: { format: "csv" } });
  console.log(nothing, lines);

  // @ts-expect-error there is no such operation
  await server.call("GET /v1/nothing");
  // @ts-expect-error the path is needed
  await server.call("GET /v1/turns/{turn_id}");
  // @ts-expect-error the path needs its parameter
  await server.call("GET /v1/turns/{turn_id}", { path: {} });
  // @ts-expect-error the body is required
  await server.call("POST /v1/turns", {});
  // @ts-expect-error an input is a list
  await server.call("POST /v1/turns", { body: { input: "Hello" } });
  // @ts-expect-error unknown field
  await server.call("POST /v1/turns", { body: { input: [], temperature: 1 } });
  // @ts-expect-error unknown kind of part
  await server.call("POST /v1/turns", { body: { input: [{ type: "video", file_id: "f" }] } });
  // @ts-expect-error unknown query parameter
  await server.call("GET /v1/tools", { query: { agents: "a" } });
  // @ts-expect-error the operation has no body
  await server.call("GET /v1/tools", { body: {} });
  // @ts-expect-error not one of the values
  await server.call("GET /v1/history/export", { query: { format: "xml" } });
  // @ts-expect-error unknown field of the response
  console.log(started.conversation);
}

export async function events(server: Throughline): Promise<void> {
  const started = await server.start({ input: [{ type: "text", text: "Hello" }] });
  for await (const viewed of started.events) useResponses(viewed);
  const ended = started.events.ended;
  if (ended?.reason === "gone") console.log(ended.error.remedy);
  // @ts-expect-error only some endings have an error
  console.log(ended?.error);
}

function useResponses(viewed: ViewerEvent): string {
  switch (viewed.type) {
    case "content_delta":
      return viewed.text;
    case "tool_result":
      return viewed.status === "success" ? "well" : viewed.status;
    case "snapshot":
    case "resync":
      return `${viewed.last_seq} ${viewed.message.message_id}`;
    case "waiting":
      // Numbered in the log; an event for one viewer has no number.
      return "seq" in viewed ? String(viewed.seq) : viewed.why;
    case "stream_end":
      // @ts-expect-error the end has no text
      return viewed.text;
    // @ts-expect-error unknown event
    case "content":
      return "";
    default: {
      const event: Event = viewed;
      return event.type;
    }
  }
}

export function errors(error: unknown): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const seconds: number | undefined = error.retryAfter;
  // @ts-expect-error the status is a number
  const status: string = error.status;
  return `${status} ${error.code} ${error.remedy ?? ""} ${seconds ?? 0}`;
}

// @ts-expect-error the address is required
new Throughline({ key: "tl_…" });
