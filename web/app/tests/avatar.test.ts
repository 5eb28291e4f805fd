import { type CallBlock, Throughline } from "@throughline/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AvatarClient, type Stage } from "../src/chat/model/avatar.ts";

const requests: { what: string; body: Record<string, unknown> }[] = [];
const made: string[] = [];

const client = new Throughline({
  baseUrl: "http://server",
  fetch: async (input, init) => {
    requests.push({
      what: `${init?.method} ${new URL(String(input)).pathname}`,
      body: JSON.parse(String(init?.body)),
    });
    return Response.json({ client_id: "page-1", tools: 2, valid_ms: 60_000, status: "accepted" });
  },
});

const stage: Stage = {
  expressions: ["smile", "sad"],
  motions: { Wave: 2 },
  expression: (name) => {
    made.push(name);
    return name === "smile" ? { kind: "ok" } : { kind: "unknown", known: ["smile", "sad"] };
  },
  motion: (group, index) => {
    made.push(`${group} ${index}`);
    return { kind: "ok" };
  },
};

const call = (change: Partial<CallBlock>): CallBlock => ({
  kind: "tool_call",
  tool_id: "c1",
  tool_name: "live2d.expression",
  status: "running",
  client_id: "page-1",
  arguments: { name: "smile" },
  ...change,
});

beforeEach(() => {
  requests.length = 0;
  made.length = 0;
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

test("gesture call is acted on at once and reported as applied", async () => {
  new AvatarClient(client, stage, "page-1").of("turn_1").onToolCall?.(call({}), 0);
  expect(made).toEqual(["smile"]);
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  expect(requests[0]).toEqual({
    what: "POST /v1/turns/turn_1/calls/c1/result",
    body: { status: "success", output: "applied", applied: true },
  });
});

test("unknown name returns the known ones", async () => {
  new AvatarClient(client, stage, "page-1")
    .of("turn_1")
    .onToolCall?.(call({ arguments: { name: "F99" } }), 0);
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  expect(requests[0]?.body).toMatchObject({
    status: "error",
    applied: false,
    output: expect.stringContaining("smile, sad"),
  });
});

test("calls of another page and finished calls move nothing", () => {
  const listener = new AvatarClient(client, stage, "page-1").of("turn_1");
  listener.onToolCall?.(call({ client_id: "page-2" }), 0);
  listener.onToolCall?.(call({ status: "success" }), 0);
  expect(made).toEqual([]);
});

test("tools are offered with known names, renewed in time and withdrawn at the end", async () => {
  const avatar = new AvatarClient(client, stage, "page-1");
  avatar.start();
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  expect(JSON.stringify(requests[0]?.body)).toContain('"enum":["smile","sad"]');
  await vi.advanceTimersByTimeAsync(30_000);
  expect(requests).toHaveLength(2);
  avatar.stop();
  avatar.stop();
  expect(requests.slice(2)).toEqual([{ what: "PUT /v1/clients/page-1/tools", body: { tools: [] } }]);
  await vi.advanceTimersByTimeAsync(120_000);
  avatar.of("turn_1").onToolCall?.(call({}), 0);
  expect(requests).toHaveLength(3);
  expect(made, "nobody is there to make it").toEqual([]);
});
