// A server on which tools were called before the tests.

import { Server } from "./server.ts";

/** Three calls of one tool, and one that fails. */
const PROMPTS = ["Compare the weather in Paris, London and Tokyo", "Call a tool that fails"];

export async function withCalls(): Promise<Server> {
  const server = await Server.start();
  const client = await server.client();
  for (const text of PROMPTS) {
    const { events } = await client.start({ input: [{ type: "text", text }] });
    for await (const _ of events);
  }
  return server;
}
