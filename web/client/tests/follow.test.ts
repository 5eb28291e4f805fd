// Following a turn with a fake server: every position and every response.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ApiError,
  type ConnectionState,
  type Follow,
  type FollowOptions,
  Throughline,
  type ViewerEvent,
} from "@throughline/client";

/** Response to a request for events: `?after=…`, `?from=snapshot` or nothing. */
type Answering = (search: string, at: number, signal: AbortSignal) => Response | Promise<Response>;

const OPENING = "retry: 1\n: open\n\n";
const TURN = "turn_1";
const head = (seq: number) => ({ turn_id: TURN, seq, timestamp: 1 });
const textEvent = (seq: number, text: string): ViewerEvent => ({
  type: "content_delta",
  ...head(seq),
  block: 0,
  text,
});
const END = (seq: number) => ({ type: "stream_end", ...head(seq), status: "completed" });
const frame = (event: { type: string; seq?: number }) =>
  `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** A response with these bytes, which then ends, breaks, or stays open. */
function stream(
  text: string | Uint8Array,
  then: "end" | "break" | "hang" = "end",
  signal?: AbortSignal,
): Response {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  let given = false;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      signal?.addEventListener("abort", () => controller.error(signal.reason));
    },
    pull(controller) {
      if (!given && bytes.length > 0) controller.enqueue(bytes);
      else if (then === "break") controller.error(new TypeError("terminated"));
      else if (then === "end") controller.close();
      else return new Promise(() => {});
      given = true;
      return undefined;
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const refusal = (status: number, headers: Record<string, string> = {}) =>
  Response.json(
    { error: { code: "word", type: "t", message: "No.", remedy: "Do.", param: null, turn_id: "turn_0" } },
    { status, headers },
  );

/** A client of that server, the requests it sent, and its connection states. */
function of(answering: Answering, options: FollowOptions = {}) {
  const requests: string[] = [];
  const connections: ConnectionState[] = [];
  const server = new Throughline({
    baseUrl: "http://server/",
    key: "tl_k",
    fetch: async (input, init) => {
      const url = new URL(String(input));
      assert.equal(url.pathname, `/v1/turns/${TURN}/events`);
      assert.equal(new Headers(init?.headers).get("authorization"), "Bearer tl_k");
      requests.push(url.search);
      assert.ok(init?.signal);
      return answering(url.search, requests.length, init.signal);
    },
  });
  const onConnection = (connection: ConnectionState) => connections.push(connection);
  return { follow: server.follow(TURN, { onConnection, ...options }), requests, connections };
}

async function all(follow: Follow): Promise<ViewerEvent[]> {
  const seen: ViewerEvent[] = [];
  for await (const viewed of follow) seen.push(viewed);
  return seen;
}

const EVENTS = [
  { type: "stream_start", ...head(1) },
  textEvent(2, "Grüße, "),
  textEvent(3, "巴黎 🌧️\r\n"),
  // Adjacent deltas may come as one, with the last number.
  textEvent(6, "Bye."),
  END(7),
] as ViewerEvent[];
const LOG = EVENTS.map((event) => frame(event as { type: string; seq: number }));

/** The log after a position, as the server sends it. */
function after(search: string): string {
  const seq = Number(new URLSearchParams(search).get("after") ?? 0);
  return (
    OPENING + EVENTS.flatMap((event, at) => ("seq" in event && event.seq > seq ? [LOG[at]] : [])).join("")
  );
}

test("events cut at every byte arrive once and in order", async () => {
  const whole = new TextEncoder().encode(after(""));
  const cutAt = async (cut: number, then: "break" | "end"): Promise<void> => {
    const { follow, requests } = of((search, at) =>
      at === 1 ? stream(whole.subarray(0, cut), then) : stream(after(search)),
    );
    assert.deepEqual(await all(follow), EVENTS, `cut at ${cut}`);
    assert.deepEqual(follow.ended, { reason: "stream_end" });
    assert.equal(follow.lastSeq, 7);
    assert.ok(requests.length <= 2);
  };
  const cuts = Array.from({ length: whole.length + 1 }, (_, cut) => cut);
  await Promise.all(cuts.flatMap((cut) => [cutAt(cut, "break"), cutAt(cut, "end")]));
});

test("batches cut at every byte arrive once and in order", async () => {
  const whole = new TextEncoder().encode(after(""));
  for (let cut = 0; cut <= whole.length; cut += 1) {
    const { follow } = of((search, at) =>
      at === 1 ? stream(whole.subarray(0, cut), "break") : stream(after(search)),
    );
    const batches: (readonly ViewerEvent[])[] = [];
    for await (const batch of follow.batches()) {
      batches.push(batch);
      assert.equal(follow.lastSeq, batch.flatMap((one) => ("seq" in one ? one.seq : [])).at(-1));
    }
    assert.deepEqual(batches.flat(), EVENTS, `cut at ${cut}`);
    assert.ok(batches.length <= 2 && batches.every((batch) => batch.length > 0));
    assert.deepEqual(follow.ended, { reason: "stream_end" });
  }
});

test("events before an unreadable one are delivered, also in one batch", async () => {
  const broken = `${OPENING + LOG.slice(0, 2).join("")}data: {\n\n${LOG.slice(2).join("")}`;
  for (const inBatches of [false, true]) {
    const { follow } = of(() => stream(broken));
    const seen: ViewerEvent[] = [];
    const failure = await (async () => {
      if (inBatches) for await (const batch of follow.batches()) seen.push(...batch);
      else for await (const viewed of follow) seen.push(viewed);
      return undefined;
    })().catch((error: unknown) => error);
    assert.ok(failure instanceof SyntaxError);
    assert.deepEqual(seen, EVENTS.slice(0, 2));
    assert.equal(follow.ended?.reason, "failed");
  }
});

test("consumer that leaves within a batch has the position of its last event", async () => {
  const { follow } = of((search) => stream(after(search)));
  for await (const viewed of follow) if ("seq" in viewed && viewed.seq === 2) break;
  assert.equal(follow.lastSeq, 2);
  assert.deepEqual(follow.ended, { reason: "left" });
  assert.deepEqual(await follow.next(), { done: true, value: undefined });
});

test("repeated events are delivered once, and positions continue from the start", async () => {
  const { follow, requests } = of((_, at) =>
    at === 1 ? stream(OPENING + LOG.slice(0, 3).join(""), "break") : stream(OPENING + LOG.join("")),
  );
  assert.deepEqual(await all(follow), EVENTS);
  assert.deepEqual(requests, ["", "?after=3"]);
  const later = of((search) => stream(after(search)), { after: 3 });
  assert.deepEqual(await all(later.follow), EVENTS.slice(3));
  assert.deepEqual(later.requests, ["?after=3"]);
});

test("snapshot and resync are delivered and set the position", async () => {
  const whole = (type: "snapshot" | "resync", last_seq: number, status?: "completed") => {
    const message = { seq: last_seq, turn_id: TURN, blocks: [], ...(status ? { status } : {}) };
    const viewed = { type, turn_id: TURN, last_seq, message };
    return `id: ${last_seq}\nevent: ${type}\ndata: ${JSON.stringify(viewed)}\n\n`;
  };
  const kinds = (seen: ViewerEvent[]) => seen.map((viewed) => viewed.type);
  const from = of(
    (_, at) =>
      at === 1 ? stream(OPENING + whole("snapshot", 5), "break") : stream(OPENING + LOG.slice(3).join("")),
    { snapshot: true },
  );
  assert.deepEqual(kinds(await all(from.follow)), ["snapshot", "content_delta", "stream_end"]);
  assert.deepEqual(from.requests, ["?from=snapshot", "?after=5"]);
  // The log has lost delivered events: later numbers are used again.
  const lost = of(() => stream(OPENING + whole("resync", 1) + LOG.slice(1).join("")), { after: 900 });
  assert.deepEqual(kinds(await all(lost.follow)), ["resync", ...EVENTS.slice(1).map((event) => event.type)]);
  // A finished message is the end.
  const over = of(() => stream(OPENING + whole("snapshot", 7, "completed"), "hang"), { snapshot: true });
  assert.deepEqual(kinds(await all(over.follow)), ["snapshot"]);
  assert.deepEqual(over.follow.ended, { reason: "stream_end" });
});

test("event without a number is delivered and keeps the position", async () => {
  const away = { type: "waiting", turn_id: TURN, timestamp: 1, reason: "store", why: "…" };
  const waiting = `event: waiting\ndata: ${JSON.stringify(away)}\n\n`;
  const { follow, requests } = of((search, at) =>
    at === 1 ? stream(OPENING + LOG[0] + waiting + waiting, "break") : stream(after(search)),
  );
  assert.deepEqual(await all(follow), [EVENTS[0], away, away, ...EVENTS.slice(1)]);
  assert.deepEqual(requests, ["", "?after=1"]);
});

test("204, 404 and 410 end the iteration with their reasons", async () => {
  const seen = of(() => new Response(null, { status: 204 }), { after: 7 });
  assert.deepEqual(await all(seen.follow), []);
  assert.deepEqual(seen.follow.ended, { reason: "nothing_more" });
  for (const [status, reason] of [
    [404, "not_found"],
    [410, "gone"],
    [401, "failed"],
  ] as const) {
    const refused = of(() => refusal(status));
    const error = await all(refused.follow).catch((error: unknown) => error);
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.code, error.message, error.remedy], [status, "word", "No.", "Do."]);
    assert.equal(error.content.turn_id, "turn_0");
    assert.deepEqual(refused.follow.ended, { reason, error });
    assert.equal(refused.requests.length, 1, "and nobody asks again");
  }
});

test("temporary error is retried, after the server's time at least", async () => {
  const failures: (() => Response)[] = [
    () => refusal(503, { "retry-after": "0" }),
    () => refusal(429),
    () => new Response("<h1>Log in</h1>", { headers: { "content-type": "text/html" } }),
    () => new Response("<h1>Bad gateway</h1>", { status: 502 }),
    () => {
      throw new TypeError("fetch failed");
    },
  ];
  const { follow, connections } = of((search, at) => {
    if (at === 1) return stream("retry: 3\n\n");
    return (failures[at - 2] ?? (() => stream(after(search))))();
  });
  assert.deepEqual(await all(follow), EVENTS);
  const waits = connections.flatMap((one) => (one.state === "waiting" ? [one] : []));
  assert.deepEqual(
    waits.map((one) => one.failures),
    [1, 2, 3, 4, 5, 6],
  );
  waits.forEach(({ ms }, at) => {
    const least = 3 * 2 ** at;
    assert.ok(ms >= least && ms <= least * 1.5, `wait ${at + 1} of ${ms} ms`);
  });
  assert.deepEqual(
    connections.slice(0, 3).map((one) => one.state),
    ["connecting", "open", "waiting"],
  );
  assert.equal(connections.at(-1)?.state, "open");
});

test("Retry-After delays the next connection", async () => {
  const { follow, connections } = of((search, at) =>
    at === 1 ? refusal(503, { "retry-after": "1.7" }) : stream(after(search)),
  );
  await all(follow);
  // Longer than its own wait would be.
  assert.deepEqual(
    connections.flatMap((one) => (one.state === "waiting" ? [one.ms] : [])),
    [1_700],
  );
});

test("limit of failures counts consecutive ones", async () => {
  const one = of(
    (search, at) =>
      at % 2 === 1 ? stream("retry: 1\n\n", "break") : stream(after(search).slice(0, -1), "break"),
    {
      failuresMax: 3,
    },
  );
  await assert.rejects(all(one.follow), TypeError);
  assert.equal(one.follow.ended?.reason, "failed");
  // The second connection brought events, so the count restarted there.
  assert.equal(one.requests.length, 4);
});

test("silence ends the connection", async () => {
  const { follow, requests } = of(
    (search, at, signal) => {
      if (at === 1) return stream(OPENING + LOG[0], "hang", signal);
      if (at === 2)
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return stream(after(search));
    },
    { silenceMs: 15 },
  );
  assert.deepEqual(await all(follow), EVENTS);
  assert.deepEqual(requests, ["", "?after=1", "?after=1"]);
});

test("heartbeat is not silence", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let now = 0;
  mock.method(performance, "now", () => now);
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const bytes = new TransformStream<Uint8Array, Uint8Array>();
  const server = bytes.writable.getWriter();
  const say = (text: string) => server.write(new TextEncoder().encode(text));
  const { follow, requests } = of(
    (_, __, signal) => {
      signal.addEventListener("abort", () => server.abort(signal.reason));
      return new Response(bytes.readable, { headers: { "content-type": "text/event-stream" } });
    },
    { silenceMs: 200 },
  );
  const seen = all(follow);
  for (let beats = 0; beats < 12; beats += 1) {
    await settled();
    now += 150;
    mock.timers.tick(150);
    await say(": hb 1\n\n");
  }
  await say(after(""));
  assert.deepEqual(await seen, EVENTS);
  assert.deepEqual(requests, [""]);
});

test("leaving closes the connection: by break, by the signal, and while waiting", async () => {
  const signals: AbortSignal[] = [];
  const hanging: Answering = (_, __, signal) => {
    signals.push(signal);
    return stream(OPENING + LOG[0], "hang", signal);
  };
  const left = of(hanging);
  for await (const viewed of left.follow) {
    assert.equal(viewed.type, "stream_start");
    break;
  }
  assert.deepEqual(left.follow.ended, { reason: "left" });
  const stop = new AbortController();
  const stopped = of(hanging, { signal: stop.signal });
  await stopped.follow.next();
  const next = stopped.follow.next();
  stop.abort(new Error("enough"));
  await assert.rejects(next, /enough/);
  assert.deepEqual(stopped.follow.ended, { reason: "left" });
  const waiting = of(hanging);
  await waiting.follow.next();
  const pending = waiting.follow.next();
  await waiting.follow.return();
  assert.deepEqual(await pending, { done: true, value: undefined });
  assert.deepEqual(await waiting.follow.next(), { done: true, value: undefined });
  // Also during a wait before a connection.
  const away = of(() => refusal(503, { "retry-after": "3600" }));
  const never = away.follow.next();
  while (away.connections.at(-1)?.state !== "waiting") await new Promise(setImmediate);
  await away.follow.return();
  assert.deepEqual(await never, { done: true, value: undefined });
  assert.ok(signals.length === 3 && signals.every((signal) => signal.aborted));
});

test("malformed event is an error without retries", async () => {
  for (const data of ["{", "null", "7", '{"seq":1}']) {
    const { follow, requests } = of(() => stream(`${OPENING}data: ${data}\n\n`));
    await assert.rejects(all(follow), SyntaxError);
    assert.equal(requests.length, 1);
  }
});
