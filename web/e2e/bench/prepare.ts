// The measured server, with the bench model as upstream.

import { Server } from "../server.ts";
import type { Upstream } from "./upstream.ts";

/** The measured server. */
export interface MeasuredServer {
  /** Address of the page, with sign-in. */
  url: string;
  key: string;
  /** Address of a path of the page, with sign-in. */
  at(path: string): string;
  /** A conversation with this many turns of this load. */
  conversation(turns: number, load: string): Promise<string>;
  stop(): Promise<void>;
}

export async function prepare(upstream: Upstream): Promise<MeasuredServer> {
  const server = await Server.configured(configuration(upstream.host));
  const key = await server.key();
  const at = (path: string): string => `${server.url}${path}#token=${key}`;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const conversation = async (turns: number, load: string): Promise<string> => {
    let id: string | undefined;
    for (let turn = 1; turn <= turns; turn += 1) {
      const body = { conversation_id: id, input: [{ type: "text", text: `${turn} of ${turns} ${load}` }] };
      const begun = await fetch(`${server.url}/v1/turns`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      const started: { turn_id?: string; conversation_id?: string } = await begun.json();
      if (!begun.ok) throw new Error(`turn ${turn}: ${begun.status} ${JSON.stringify(started)}`);
      id = started.conversation_id;
      // The stream ends with the turn.
      await (await fetch(`${server.url}/v1/turns/${started.turn_id}/events`, { headers })).text();
    }
    return id ?? "";
  };
  return { url: at("/"), key, at, conversation, stop: () => server.stop() };
}

/** One agent, one cheap tool, and no limits: one key is used for everything. */
function configuration(host: string): string {
  return `[upstreams.bench]
dialect = "openai-chat"
base_url = "http://${host}/v1"
proxy = "off"

[agents.default]
model = "bench/any"
mode = "native"
guard = { period_max = 0 }

[agents.default.tool_call]
enabled = true
default_tool_enabled = false
tool_toggles = { bench = true }
max_iterations = 50

[http_tools."bench.search"]
description = "Rows of invented data"
method = "POST"
url = "http://${host}/tool"
private_hosts = ["${host}"]
body = "arguments"
effect = "pure"
parameters = '''{"type": "object", "required": ["query"], "properties": {
  "query": {"type": "string"}, "path": {"type": "string"}, "limit": {"type": "integer"},
  "filters": {"type": "object", "properties": {"kind": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}}}}'''

[server]
origins = ["http://${host}"]

[server.limits]
turns_per_minute_max = 1000000
turns_per_key_max = 1000
streams_per_key_max = 1000
`;
}
