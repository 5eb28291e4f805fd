// The client against `throughline serve` with the demo model, at BASE_URL and with KEY.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ApiError, type Event, type StartTurn, Throughline, type ViewerEvent } from "@throughline/client";
import { CuttingProxy } from "./cutting.ts";

const baseUrl = process.env.BASE_URL ?? "";
const key = process.env.KEY ?? "";
const server = new Throughline({ baseUrl, key });
const WEATHER: StartTurn = {
  input: [{ type: "text", text: "What's the weather in Beijing, Paris and New York?" }],
};

/** The events of a turn in one request, without the client. */
async function inOnePiece(turnId: string): Promise<Event[]> {
  const response = await fetch(`${baseUrl}/v1/turns/${turnId}/events`, {
    headers: { authorization: `Bearer ${key}` },
  });
  assert.equal(response.status, 200);
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

async function all(events: AsyncIterable<ViewerEvent>): Promise<ViewerEvent[]> {
  const seen: ViewerEvent[] = [];
  for await (const viewed of events) seen.push(viewed);
  return seen;
}

async function refused(request: Promise<unknown>): Promise<ApiError> {
  const error = await request.catch((error: unknown) => error);
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

test("turn with tools survives cuts while it runs and afterwards", async () => {
  const cutAfter = async (every: number): Promise<void> => {
    const proxy = new CuttingProxy(baseUrl, every);
    const through = new Throughline({ baseUrl: await proxy.listen(), key });
    try {
      const turn = await through.start(WEATHER);
      const live = await all(turn.events);
      const whole = await inOnePiece(turn.turn_id);
      assert.deepEqual(live, whole, `every ${every} bytes`);
      assert.deepEqual(
        whole.map((event) => event.seq),
        Array.from(whole, (_, at) => at + 1),
      );
      assert.equal(whole.filter((event) => event.type === "tool_result").length, 3);
      assert.deepEqual(turn.events.ended, { reason: "stream_end" });
      const bytes = JSON.stringify(whole).length;
      assert.ok(proxy.streams > bytes / every / 2, `${proxy.streams} connections for ${bytes} bytes`);
      assert.deepEqual(await all(through.follow(turn.turn_id)), whole, "and again, when it is over");
    } finally {
      proxy.close();
    }
  };
  await Promise.all([150, 400, 1_500, 6_000].map(cutAfter));
});

test("start with a lost response creates one turn", async () => {
  const proxy = new CuttingProxy(baseUrl, 1_000_000);
  const through = new Throughline({ baseUrl: await proxy.listen(), key });
  try {
    const before = (await server.call("GET /v1/conversations")).items.length;
    proxy.lost = 2;
    const turn = await through.start({ input: [{ type: "text", text: "Hello" }] });
    assert.equal((await all(turn.events)).at(-1)?.type, "stream_end");
    assert.equal((await server.call("GET /v1/conversations")).items.length, before + 1);
    assert.equal(proxy.lost, 0);
  } finally {
    proxy.close();
  }
});

test("turn is followed from a position, from a snapshot, and after its end", async () => {
  const turn = await server.start(WEATHER);
  const whole = await all(turn.events);
  const last = whole.length;
  const follow = (options: { after?: number; snapshot?: boolean }) => server.follow(turn.turn_id, options);
  assert.deepEqual(await all(follow({ after: 20 })), whole.slice(20));
  const seen = follow({ after: last });
  assert.deepEqual(await all(seen), []);
  assert.deepEqual(seen.ended, { reason: "nothing_more" });
  const [snapshot, ...rest] = await all(follow({ snapshot: true }));
  assert.ok(snapshot?.type === "snapshot" && rest.length === 0);
  assert.equal(snapshot.last_seq, last);
  const { message, status } = await server.call("GET /v1/turns/{turn_id}", {
    path: { turn_id: turn.turn_id },
  });
  assert.deepEqual(snapshot.message, message);
  assert.equal(status, "completed");
  const [resync] = await all(follow({ after: 9_000 }));
  assert.ok(resync?.type === "resync");
  assert.deepEqual(resync.message, message);
});

test("refusal is an error with code and remedy", async () => {
  const nobody = await refused(server.call("GET /v1/turns/{turn_id}", { path: { turn_id: "turn_0" } }));
  assert.deepEqual([nobody.status, nobody.code], [404, "not_found"]);
  assert.match(nobody.remedy ?? "", /returned by this server/);
  const follow = server.follow("turn_0");
  const error = await refused(all(follow));
  assert.equal(error.status, 404);
  assert.deepEqual(follow.ended, { reason: "not_found", error });
  const idempotencyKey = "the same for two";
  const say = (text: string) =>
    server.call("POST /v1/turns", { body: { input: [{ type: "text", text }] }, idempotencyKey });
  const first = await say("One");
  assert.equal((await say("One")).turn_id, first.turn_id);
  const reused = await refused(say("Two"));
  assert.deepEqual([reused.status, reused.code], [422, "idempotency_key_reused"]);
  assert.match(reused.remedy ?? "", /new key/);
  assert.equal(reused.param, "Idempotency-Key");
  const stranger = new Throughline({ baseUrl, key: "tl_nobody" });
  assert.equal((await refused(stranger.call("GET /v1/tools"))).status, 401);
  await all(server.follow(first.turn_id));
});

test("paths, queries and bodies of every kind arrive unchanged", async () => {
  const conversation = await server.call("POST /v1/conversations", { body: { title: "Grüße / 巴黎 ?&=%" } });
  const path = { conversation_id: conversation.id };
  const tree = await server.call("GET /v1/conversations/{conversation_id}", { path });
  assert.equal(tree.title, conversation.title);
  const found = await server.call("GET /v1/conversations", { query: { q: "巴黎 ?&=%", limit: 5 } });
  assert.deepEqual(
    found.items.map((one) => one.id),
    [conversation.id],
  );
  const lines = await server.call("GET /v1/conversations/{conversation_id}/export", { path });
  assert.equal(JSON.parse(lines.split("\n")[0] ?? "").id, conversation.id);
  const copy = await server.call("POST /v1/conversations/import", { body: lines });
  assert.equal(copy.title, conversation.title);
  assert.notEqual(copy.id, conversation.id);
  assert.equal(await server.call("DELETE /v1/conversations/{conversation_id}", { path }), undefined);
  const text = '{"a": "é"}';
  const form = new FormData();
  form.append("file", new Blob([text], { type: "application/json" }), "a.json");
  const bodies = [new Blob([text], { type: "application/json" }), new TextEncoder().encode(text), form];
  for (const body of bodies) {
    const file = await server.call("POST /v1/files", { body, query: { name: "a.json" } });
    const content = await server.call("GET /v1/files/{file_id}/content", { path: { file_id: file.id } });
    assert.equal(await content.text(), text);
  }
  for (const file_id of ["", ".", ".."]) {
    await assert.rejects(server.call("GET /v1/files/{file_id}", { path: { file_id } }), RangeError);
  }
  assert.equal(
    (await refused(server.call("GET /v1/files/{file_id}", { path: { file_id: "../turns" } }))).code,
    "not_found",
  );
});

test("aborted call rejects with the signal's reason", async () => {
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await assert.rejects(server.call("GET /v1/tools", { signal: stop.signal }), /enough/);
  await assert.rejects(server.start(WEATHER, { signal: stop.signal }), /enough/);
});

test("example of docs/api.md works", async () => {
  const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const example = readFileSync(pathOf("./example.ts"), "utf8");
  const document = readFileSync(pathOf("../../../docs/api.md"), "utf8");
  assert.equal(document.split("```ts\n")[1]?.split("```")[0], example, "docs/api.md shows tests/example.ts");
  const options = ["--disable-warning=ExperimentalWarning", pathOf("./example.ts")];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, options);
  assert.equal(stderr, "");
  assert.match(stdout, /\[demo\.weather\].*\[success\].*\ncompleted\n404 not_found use an id /s);
});
