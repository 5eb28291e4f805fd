// Following turns over a WebSocket, with a fake server.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ViewerEvent } from "../src/api.ts";
import {
  ApiError,
  type ConnectionState,
  type Follow,
  type FollowOptions,
  Throughline,
} from "../src/index.ts";

const TURN = "turn_1";
const head = (seq: number, turn = TURN) => ({ turn_id: turn, seq, timestamp: 1 });
const textEvent = (seq: number, turn = TURN): ViewerEvent => ({
  type: "content_delta",
  ...head(seq, turn),
  block: 0,
  text: String(seq),
});
const ended = (seq: number, turn = TURN): ViewerEvent => ({
  type: "stream_end",
  ...head(seq, turn),
  status: "completed",
});
const LOG: ViewerEvent[] = [textEvent(1), textEvent(2), textEvent(3), ended(4)];

type Op = { op: string; turn_id?: string; after?: number; from?: string; ref?: unknown };

/** The server's side of a socket. */
class FakeSocket extends EventTarget {
  readonly url: URL;
  readonly protocol: string;
  readonly received: Op[] = [];
  isClosed = false;
  /** Response of the server to a message; by default none. */
  answer: (op: Op, socket: FakeSocket) => void = () => {};

  constructor(url: string | URL, protocol: string) {
    super();
    this.url = new URL(url);
    this.protocol = protocol;
  }

  send(text: string): void {
    const op: Op = JSON.parse(text);
    this.received.push(op);
    this.answer(op, this);
  }

  open(): void {
    this.dispatchEvent(new Event("open"));
  }

  reply(...messages: object[]): void {
    for (const message of messages) this.receive(JSON.stringify(message));
  }

  receive(data: string): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }

  close(): void {
    this.break(1000);
  }

  break(code: number): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.dispatchEvent(Object.assign(new Event("close"), { code }));
  }
}

/** Responds like the server, with the events of this log after the requested number, up to the last one so far. */
function serving(log: readonly ViewerEvent[]): FakeSocket["answer"] {
  return ({ op, turn_id, after = 0, ref }, socket) => {
    if (op === "unsubscribe") {
      socket.reply({ op: "done", status: "unsubscribing" });
      return socket.reply({ op: "unsubscribed", turn_id, last_seq: after, ended: false });
    }
    if (op !== "subscribe") return;
    socket.reply({ op: "subscribed", turn_id, ref });
    const events = log.filter((event) => event.turn_id === turn_id && "seq" in event && event.seq > after);
    socket.reply(...events);
    const last = log.at(-1);
    if (last?.type === "stream_end" && "seq" in last)
      socket.reply({ op: "unsubscribed", turn_id, last_seq: last.seq, ended: true });
  };
}

/** Responses of the server over HTTP. */
interface Http {
  ticket?(): Response;
  events?(): Response;
}

/** A page with its client, the sockets that it has opened and the requests that it has sent. */
function page(behave: (socket: FakeSocket, at: number) => void, http: Http = {}) {
  const sockets: FakeSocket[] = [];
  const requests: string[] = [];
  const connections: ConnectionState[] = [];
  let tickets = 0;
  class Socket extends FakeSocket {
    constructor(url: string | URL, protocol: string) {
      super(url, protocol);
      sockets.push(this);
      queueMicrotask(() => behave(this, sockets.length));
    }
  }
  const client = new Throughline({
    baseUrl: "https://server/at",
    key: "tl_k",
    webSocket: Socket as unknown as typeof WebSocket,
    fetch: async (input) => {
      const url = new URL(String(input));
      requests.push(url.pathname + url.search);
      if (!url.pathname.endsWith("/v1/tickets"))
        return http.events?.() ?? new Response(null, { status: 500 });
      tickets += 1;
      return http.ticket?.() ?? Response.json({ ticket: `t${tickets}`, expires_in_ms: 60_000 });
    },
  });
  const follow = (options: FollowOptions = {}, turn = TURN): Follow =>
    client.follow(turn, { onConnection: (connection) => connections.push(connection), ...options });
  return { client, follow, sockets, requests, connections };
}

async function all(follow: Follow): Promise<ViewerEvent[]> {
  const seen: ViewerEvent[] = [];
  for await (const viewed of follow) seen.push(viewed);
  return seen;
}

const stream = (events: readonly ViewerEvent[]): Response =>
  new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""), {
    headers: { "content-type": "text/event-stream" },
  });

const opening =
  (answer: FakeSocket["answer"]) =>
  (socket: FakeSocket): void => {
    socket.answer = answer;
    socket.open();
  };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Advances time. */
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test("turn is followed over a socket with a ticket", async () => {
  const { follow, sockets, requests, connections } = page(opening(serving(LOG)));
  const one = follow();
  expect(await all(one)).toEqual(LOG);
  expect(one.ended).toEqual({ reason: "stream_end" });
  expect(sockets.map(({ url, protocol }) => [url.href, protocol])).toEqual([
    ["wss://server/at/v1/ws?ticket=t1", "throughline.v1"],
  ]);
  expect(sockets[0]?.received).toEqual([{ op: "subscribe", ref: TURN, turn_id: TURN }]);
  expect(requests).toEqual(["/at/v1/tickets"]);
  expect(connections.map(({ state }) => state)).toEqual(["connecting", "open"]);
});

test("several turns share one socket", async () => {
  const turns = ["turn_1", "turn_2", "turn_3"];
  const { follow, sockets } = page(opening(() => {}));
  const seen = turns.map((turn) => all(follow({}, turn)));
  await pass(0);
  for (const turn_id of turns) sockets[0]?.reply({ op: "subscribed", turn_id });
  for (const seq of [1, 2]) for (const turn of turns) sockets[0]?.reply(textEvent(seq, turn));
  for (const turn of turns) sockets[0]?.reply(ended(3, turn));
  expect(await Promise.all(seen)).toEqual(
    turns.map((turn) => [textEvent(1, turn), textEvent(2, turn), ended(3, turn)]),
  );
  expect(sockets.length).toBe(1);
});

test("broken socket loses and repeats no event", async () => {
  // After each event, with a server that repeats the last one.
  for (let cut = 0; cut <= LOG.length; cut += 1) {
    const { follow, sockets, requests, connections } = page((socket, at) => {
      socket.answer = (op, socket) => {
        if (at > 1) return serving(LOG)({ ...op, after: Math.max(0, (op.after ?? 0) - 1) }, socket);
        serving(LOG.slice(0, cut))(op, socket);
        socket.break(1006);
      };
      socket.open();
    });
    const seen = all(follow());
    await pass(10_000);
    expect(await seen, `cut after ${cut}`).toEqual(LOG);
    if (cut === LOG.length) continue;
    expect(sockets[1]?.received).toEqual([
      { op: "subscribe", ref: TURN, turn_id: TURN, ...(cut === 0 ? {} : { after: cut }) },
    ]);
    // Each socket has its own ticket, and there were no other HTTP requests.
    expect(requests).toEqual(["/at/v1/tickets", "/at/v1/tickets"]);
    expect(connections.map(({ state }) => state)).toEqual([
      "connecting",
      "open",
      "waiting",
      "connecting",
      "open",
    ]);
  }
});

test("failed socket falls back to server-sent events", async () => {
  const refusals: ((socket: FakeSocket) => void)[] = [
    (socket) => socket.break(1006),
    // The socket is open, but nothing arrives.
    (socket) => {
      socket.open();
      socket.break(1006);
    },
    // Opening the socket hangs.
    () => {},
  ];
  for (const refuse of refusals) {
    const { follow, sockets, requests } = page(refuse, { events: () => stream(LOG) });
    const seen = all(follow());
    await pass(5_000);
    expect(await seen).toEqual(LOG);
    expect(requests).toEqual(["/at/v1/tickets", `/at/v1/turns/${TURN}/events`]);
    // The next turn does not wait for another refusal.
    expect(await all(follow())).toEqual(LOG);
    expect(sockets.length).toBe(1);
    // A while later it is tried again.
    await pass(60_000);
    expect(sockets.length).toBe(1);
    const later = all(follow());
    await pass(5_000);
    expect(await later).toEqual(LOG);
    expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  }
});

test("server without tickets falls back to server-sent events", async () => {
  const ticket = () => new Response("Not found", { status: 404 });
  const { follow, sockets, requests } = page(() => {}, { ticket, events: () => stream(LOG) });
  expect(await all(follow())).toEqual(LOG);
  expect(requests).toEqual(["/at/v1/tickets", `/at/v1/turns/${TURN}/events`]);
  expect(sockets).toEqual([]);
});

test("unreachable server is retried, and then gets a socket", async () => {
  let isThere = false;
  const ticket = (): Response => {
    if (!isThere) throw new TypeError("Failed to fetch");
    return Response.json({ ticket: "t", expires_in_ms: 60_000 });
  };
  const { follow, sockets, requests } = page(opening(serving(LOG)), { ticket });
  const seen = all(follow());
  await pass(3_000);
  isThere = true;
  await pass(60_000);
  expect(await seen).toEqual(LOG);
  expect(new Set(requests)).toEqual(new Set(["/at/v1/tickets"]));
  expect(sockets.length).toBe(1);
});

test("invalid key ends the turn", async () => {
  const error = { code: "unauthenticated", type: "t", message: "No." };
  const tickets = [Response.json({ ticket: "t" }), Response.json({ error }, { status: 401 })];
  const ticket = () => tickets.shift() ?? new Response(null, { status: 500 });
  const { follow, sockets } = page(opening(serving(LOG.slice(0, 2))), { ticket });
  const one = follow();
  const seen = all(one).catch((error: unknown) => error);
  await pass(0);
  sockets[0]?.break(4401);
  await pass(5_000);
  expect(await seen).toBeInstanceOf(ApiError);
  expect(one.ended).toMatchObject({ reason: "failed", error: { status: 401 } });
  expect(sockets.length).toBe(1);
});

test("refusal over a socket equals that of HTTP", async () => {
  const error = { code: "word", type: "t", message: "No.", remedy: "Do." };
  const refusing = (status: number) =>
    page(opening(({ ref }, socket) => socket.reply({ op: "error", ref, status, error })));
  for (const [status, reason] of [
    [404, "not_found"],
    [410, "gone"],
    [403, "failed"],
  ] as const) {
    const { follow, sockets } = refusing(status);
    const one = follow();
    await expect(all(one)).rejects.toMatchObject({ status, code: "word", remedy: "Do." });
    expect(one.ended).toMatchObject({ reason });
    expect(sockets[0]?.received.length, "nobody asks again").toBe(1);
  }
  // A temporary refusal is retried after the time that the server names.
  const { follow, connections } = page(
    opening((op, socket) => {
      if (socket.received.length > 1) return serving(LOG)(op, socket);
      socket.reply({ op: "error", ref: op.ref, status: 503, retry_after_s: 7, error });
    }),
  );
  const seen = all(follow());
  await pass(7_000);
  expect(await seen).toEqual(LOG);
  expect(connections.flatMap((one) => (one.state === "waiting" ? [one.ms] : []))).toEqual([7_000]);
});

test("turn that fails on a socket is followed again on it", async () => {
  const { follow, sockets } = page(
    opening((op, socket) => {
      if (socket.received.length > 1) return serving(LOG)(op, socket);
      serving(LOG.slice(0, 2))(op, socket);
      const error = { code: "store_unavailable", type: "t", message: "No.", turn_id: op.turn_id };
      socket.reply({ op: "error", status: 503, error });
    }),
  );
  const seen = all(follow());
  await pass(5_000);
  expect(await seen).toEqual(LOG);
  expect(sockets.length).toBe(1);
  expect(sockets[0]?.received.map(({ after }) => after)).toEqual([undefined, 2]);
});

test("end without more events equals that of HTTP", async () => {
  const { follow } = page(opening(serving(LOG)));
  const one = follow({ after: 4 });
  expect(await all(one)).toEqual([]);
  expect(one.ended).toEqual({ reason: "nothing_more" });
});

test("socket without a pong is lost, a silent one is not", async () => {
  const { follow, sockets, connections } = page((socket, at) => {
    socket.answer = (op, socket) => {
      if (op.op === "ping" && at === 1 && socket.received.length < 8) socket.reply({ op: "pong" });
      else serving(at === 1 ? LOG.slice(0, 1) : LOG)(op, socket);
    };
    socket.open();
  });
  const seen = all(follow());
  await pass(60_000);
  // A ping was sent, and answered.
  expect(sockets.length).toBe(1);
  expect(sockets[0]?.received.filter(({ op }) => op === "ping").length).toBeGreaterThan(3);
  await pass(60_000);
  expect(await seen).toEqual(LOG);
  expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  expect(connections.flatMap((one) => (one.state === "waiting" ? [String(one.error)] : []))).toEqual([
    "SilenceError: nothing came for 25000 ms",
  ]);
});

test("consumer that leaves is unsubscribed, and can return at once", async () => {
  const { follow, sockets } = page(opening(serving(LOG.slice(0, 2))));
  const left = follow();
  await left.next();
  await left.return();
  const back = follow({ after: 1 });
  expect((await back.next()).value).toEqual(textEvent(2));
  expect(sockets.length).toBe(1);
  expect(sockets[0]?.received.map(({ op }) => op)).toEqual(["subscribe", "unsubscribe", "subscribe"]);
  // Also before the server knows that the previous subscription has ended.
  const socket = sockets[0];
  if (socket !== undefined) socket.answer = () => {};
  await back.return();
  const next = follow({ after: 1 }).next();
  await pass(1_000);
  expect(socket?.received.length).toBe(4);
  if (socket !== undefined) socket.answer = serving(LOG);
  socket?.reply({ op: "unsubscribed", turn_id: TURN, last_seq: 2, ended: false });
  expect((await next).value).toEqual(textEvent(2));
  expect(sockets.length).toBe(1);
});

test("turn that is followed twice has two sockets", async () => {
  const { follow, sockets } = page(opening(serving(LOG.slice(0, 2))));
  const [first, second] = [follow(), follow()];
  expect([(await first.next()).value, (await second.next()).value]).toEqual([textEvent(1), textEvent(1)]);
  expect(sockets.length).toBe(2);
});

test("idle socket is closed after a minute", async () => {
  const { client, follow, sockets } = page(opening(serving(LOG)));
  client.prepare();
  await pass(0);
  expect(await all(follow())).toEqual(LOG);
  await pass(59_000);
  expect(await all(follow())).toEqual(LOG);
  await pass(59_000);
  expect(sockets.map(({ isClosed }) => isClosed)).toEqual([false]);
  await pass(1_000);
  expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true]);
  // The next turn opens another one.
  expect(await all(follow())).toEqual(LOG);
  expect(sockets.length).toBe(2);
});

test("consumer that leaves before the socket opens leaves nothing", async () => {
  const { follow, sockets } = page(() => {});
  const leave = new AbortController();
  const seen = all(follow({ signal: leave.signal })).catch((error: unknown) => error);
  await pass(0);
  leave.abort(new Error("enough"));
  expect(String(await seen)).toBe("Error: enough");
  sockets[0]?.open();
  await pass(60_000);
  expect(sockets[0]?.received).toEqual([]);
  expect(sockets[0]?.isClosed).toBe(true);
});

test("malformed message is an error without retries", async () => {
  for (const data of ["{", "null", "7", '{"seq":1}']) {
    const { follow, sockets } = page(
      opening(({ turn_id }, socket) => {
        socket.reply({ op: "subscribed", turn_id });
        socket.receive(data);
      }),
    );
    await expect(all(follow())).rejects.toBeInstanceOf(SyntaxError);
    expect(sockets.map(({ isClosed }) => isClosed)).toEqual([true]);
  }
});
