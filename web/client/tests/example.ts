import { ApiError, Throughline } from "@throughline/client";

const server = new Throughline({
  baseUrl: process.env.BASE_URL ?? "http://127.0.0.1:8787",
  key: process.env.KEY,
});

const turn = await server.start({ input: [{ type: "text", text: "What's the weather in Paris?" }] });
for await (const event of turn.events) {
  if (event.type === "content_delta") process.stdout.write(event.text);
  if (event.type === "tool_use") console.log(`\n[${event.tool_name}]`);
  if (event.type === "tool_result") console.log(`[${event.status}]`);
  if (event.type === "stream_end") console.log(`\n${event.status}`);
}

try {
  await server.call("GET /v1/turns/{turn_id}", { path: { turn_id: "turn_of_nobody" } });
} catch (error) {
  if (error instanceof ApiError) console.log(error.status, error.code, error.remedy);
}
