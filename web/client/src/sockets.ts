// Turns over WebSockets: one carries all turns of a page, since a browser opens six connections to a server that speaks HTTP/1.1,
// and a turn that is followed over server-sent events holds one of them.

import type { ErrorDetail, ViewerEvent } from "./api.ts";
import {
  type FollowStart,
  isLast,
  noEvent,
  type Received,
  SilenceError,
  type TurnConnection,
} from "./connection.ts";
import { ApiError } from "./error.ts";

const PROTOCOL = "throughline.v1";
/** Time limit for opening a socket. */
const OPEN_MS_MAX = 5_000;
/** A socket without a followed turn is closed after this time. */
const IDLE_MS = 60_000;
/** Wait after a failure to open a socket, doubled with each further one. */
const REFUSED_MS = 60_000;
const REFUSED_MS_MAX = 3_600_000;
/** Checks of a socket within the silence after which it counts as lost. */
const CHECKS = 5;
/** The last of these checks wait for the answer to a ping. */
const CHECKS_FOR_PONG = 3;

/** Makes a WebSocket, as `WebSocket` does. */
export type WebSocketConstructor = new (url: string | URL, protocol: string) => WebSocket;

/** Messages of the server other than events. */
type ServerMessage =
  | { op: "subscribed"; turn_id: string }
  | { op: "unsubscribed"; turn_id: string; last_seq: number; ended: boolean }
  | { op: "error"; ref?: unknown; status: number; retry_after_s?: number; error: ErrorDetail }
  | { op: "done" | "pong" };

/** No WebSocket can be opened here, for example because of a proxy. */
class NoSocketError extends Error {
  override readonly name = "NoSocketError";
}

/** The socket closed before it answered. */
export class SocketLostError extends Error {
  override readonly name = "SocketLostError";
}

/** The sockets of one client: one, and another one for a turn that is followed twice. */
export class TurnSockets {
  readonly #address: () => Promise<URL>;
  readonly #make: (url: URL) => WebSocket;
  readonly #sockets = new Set<TurnSocket>();
  #refusals = 0;
  /** Time before which no socket is tried. */
  #notBefore = 0;

  /** `address`: URL of the server, including the credentials. */
  constructor(makeSocket: WebSocketConstructor, address: () => Promise<URL>) {
    this.#address = async () => {
      try {
        return await address();
      } catch (error) {
        const isOfServer = error instanceof ApiError && error.status !== 401 && error.status < 500;
        throw isOfServer ? new NoSocketError(error.message) : error;
      }
    };
    this.#make = (url) => {
      try {
        return new makeSocket(url, PROTOCOL);
      } catch (error) {
        // A browser throws if the policy of a page forbids it.
        throw new NoSocketError(String(error));
      }
    };
  }

  /** Opens a socket if there is none, so that the first turn need not wait for it. */
  prepare(silenceMs: number): void {
    if (this.#sockets.size === 0 && !this.#isRefused) this.#add(silenceMs);
  }

  /** Follows a turn, as `OpenEvents` says. `"none"`: no socket can be opened. */
  async follow(
    turnId: string,
    from: FollowStart,
    signal: AbortSignal,
    silenceMs: number,
  ): Promise<TurnConnection | "none"> {
    for (;;) {
      signal.throwIfAborted();
      const sockets = [...this.#sockets];
      const free = sockets.find((socket) => !socket.has(turnId));
      const left = free === undefined ? sockets.map((one) => one.left(turnId)).find(Boolean) : undefined;
      if (left !== undefined) {
        await endedBy(signal, left);
        continue;
      }
      if (free === undefined && this.#isRefused) return "none";
      try {
        return await (free ?? this.#add(silenceMs)).follow(turnId, from, signal);
      } catch (error) {
        if (error instanceof NoSocketError) return "none";
        throw error;
      }
    }
  }

  get #isRefused(): boolean {
    return performance.now() < this.#notBefore;
  }

  #add(silenceMs: number): TurnSocket {
    const socket = new TurnSocket(silenceMs, {
      onMessage: () => {
        this.#refusals = 0;
      },
      onEnd: (isRefused) => {
        this.#sockets.delete(socket);
        if (!isRefused) return;
        this.#notBefore = performance.now() + Math.min(REFUSED_MS * 2 ** this.#refusals, REFUSED_MS_MAX);
        this.#refusals += 1;
      },
    });
    this.#sockets.add(socket);
    void socket.connect(this.#address, this.#make);
    return socket;
  }
}

interface SocketListener {
  onMessage(): void;
  /** `isRefused`: the server never answered over it. */
  onEnd(isRefused: boolean): void;
}

/** One WebSocket, also before it is open. */
class TurnSocket {
  readonly #listener: SocketListener;
  readonly #opened: Promise<void>;
  readonly #turns = new Map<string, FollowedTurn>();
  readonly #silenceMs: number;
  #socket: WebSocket | undefined;
  #onOpen: () => void = () => {};
  #onRefused: (error: unknown) => void = () => {};
  #idle: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setInterval> | undefined;
  #isEnded = false;
  /** The server has answered over it. */
  #isProven = false;
  /** Something arrived since the last check. */
  #isActive = true;
  /** Time of a ping that was not answered yet. */
  #pingedAt: number | undefined;

  constructor(silenceMs: number, listener: SocketListener) {
    this.#listener = listener;
    this.#silenceMs = silenceMs;
    this.#opened = new Promise((resolve, reject) => {
      this.#onOpen = resolve;
      this.#onRefused = reject;
    });
    // Not every consumer waits for it.
    this.#opened.catch(() => undefined);
    this.#rest();
  }

  async connect(address: () => Promise<URL>, make: (url: URL) => WebSocket): Promise<void> {
    try {
      const url = await address();
      if (!this.#isEnded) this.#begin(make(url));
    } catch (error) {
      this.#end(error, error instanceof NoSocketError);
    }
  }

  has(turnId: string): boolean {
    return this.#turns.has(turnId);
  }

  /** If the turn is being left: resolves when it can be followed here again. */
  left(turnId: string): Promise<void> | undefined {
    const turn = this.#turns.get(turnId);
    return turn?.hasLeft ? turn.removed : undefined;
  }

  async follow(turnId: string, from: FollowStart, signal: AbortSignal): Promise<TurnConnection> {
    const turn = new FollowedTurn();
    this.#turns.set(turnId, turn);
    clearTimeout(this.#idle);
    let isRequested = false;
    const leave = (): void => {
      turn.end({ error: signal.reason });
      if (this.#turns.get(turnId) !== turn) return;
      turn.hasLeft = true;
      if (!isRequested) this.#remove(turnId);
      else if (!turn.isComplete) this.#send({ op: "unsubscribe", turn_id: turnId });
    };
    signal.addEventListener("abort", leave, { once: true });
    await endedBy(signal, this.#opened);
    this.#send({ op: "subscribe", ref: turnId, turn_id: turnId, ...from });
    isRequested = true;
    await turn.begun;
    return turn;
  }

  #begin(socket: WebSocket): void {
    this.#socket = socket;
    const late = setTimeout(
      () => this.#end(new NoSocketError(`not open after ${OPEN_MS_MAX} ms`), true),
      OPEN_MS_MAX,
    );
    socket.addEventListener("open", () => {
      clearTimeout(late);
      if (this.#isEnded) return;
      this.#watch = setInterval(this.#check, this.#silenceMs / CHECKS);
      this.#onOpen();
    });
    socket.addEventListener("message", ({ data }) => this.#hear(data));
    socket.addEventListener("close", ({ code }) => {
      clearTimeout(late);
      this.#end(undefined, !this.#isProven, `closed with ${code}`);
    });
  }

  #hear(data: unknown): void {
    if (this.#isEnded) return;
    this.#isActive = true;
    this.#isProven = true;
    this.#listener.onMessage();
    try {
      const message: ServerMessage | ViewerEvent | null = JSON.parse(String(data));
      const isObject = typeof message === "object" && message !== null;
      if (isObject && "op" in message) return this.#answer(message);
      if (!isObject || typeof message.type !== "string") throw noEvent(String(data));
      this.#turns.get(message.turn_id)?.take(message);
    } catch (error) {
      this.#end(error, false);
    }
  }

  #answer(message: ServerMessage): void {
    switch (message.op) {
      case "subscribed":
        return this.#turns.get(message.turn_id)?.begin();
      case "unsubscribed":
        this.#turns.get(message.turn_id)?.end(message.ended ? "over" : "closed");
        return this.#remove(message.turn_id);
      case "error": {
        const turnId = message.ref ?? message.error.turn_id;
        const turn = typeof turnId === "string" ? this.#turns.get(turnId) : undefined;
        if (typeof turnId !== "string" || turn === undefined) return;
        turn.end({ error: new ApiError(message.status, message.error, message.retry_after_s) });
        return this.#remove(turnId);
      }
    }
  }

  #remove(turnId: string): void {
    const turn = this.#turns.get(turnId);
    if (turn === undefined) return;
    this.#turns.delete(turnId);
    turn.onRemoved();
    this.#rest();
  }

  /** Without a turn, it waits a while for one. */
  #rest(): void {
    clearTimeout(this.#idle);
    if (this.#turns.size === 0) this.#idle = setTimeout(() => this.#end(undefined, false), IDLE_MS);
  }

  /** Checks whether the server is there. Timers of a hidden tab are late, so only an unanswered ping counts. */
  readonly #check = (): void => {
    if (this.#isActive || this.#turns.size === 0) {
      this.#isActive = false;
      this.#pingedAt = undefined;
    } else if (this.#pingedAt === undefined) {
      this.#pingedAt = performance.now();
      this.#send({ op: "ping" });
    } else if (performance.now() - this.#pingedAt >= (this.#silenceMs * CHECKS_FOR_PONG) / CHECKS) {
      this.#end(new SilenceError(this.#silenceMs), !this.#isProven);
    }
  };

  #send(message: object): void {
    this.#socket?.send(JSON.stringify(message));
  }

  /** Closes the socket and ends the turns on it: with the error, or as a closed connection. */
  #end(error: unknown, isRefused: boolean, why = "closed"): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#idle);
    clearInterval(this.#watch);
    this.#listener.onEnd(isRefused);
    const lost = isRefused ? new NoSocketError(why) : new SocketLostError(why);
    this.#onRefused(error ?? lost);
    for (const turn of this.#turns.values()) {
      turn.end(error === undefined ? "closed" : { error }, lost);
      turn.onRemoved();
    }
    this.#turns.clear();
    this.#socket?.close();
  }
}

/** End of a turn over a socket: of the turn itself, of the connection, or by an error. */
type TurnEnd = "over" | "closed" | { error: unknown };

/** One turn over a socket. */
class FollowedTurn implements TurnConnection {
  /** Resolves when the server has confirmed that events follow. */
  readonly begun: Promise<void>;
  /** Resolves when the server has confirmed the end. */
  readonly removed: Promise<void>;
  /** The consumer has left, which the server may not know yet. */
  hasLeft = false;
  /** The last event has arrived. */
  isComplete = false;
  begin: () => void = () => {};
  onRemoved: () => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #events: ViewerEvent[] = [];
  #end: TurnEnd | undefined;
  #wake: () => void = () => {};

  constructor() {
    this.begun = new Promise((resolve, reject) => {
      this.begin = resolve;
      this.#reject = reject;
    });
    this.begun.catch(() => undefined);
    this.removed = new Promise((resolve) => {
      this.onRemoved = resolve;
    });
  }

  take(viewed: ViewerEvent): void {
    if (this.#end !== undefined) return;
    this.#events.push(viewed);
    this.isComplete ||= isLast(viewed);
    this.#wake();
  }

  /** `lost`: the error for a consumer that waits for the beginning. */
  end(end: TurnEnd, lost?: Error): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#reject(typeof end === "object" ? end.error : (lost ?? new SocketLostError(end)));
    this.#wake();
  }

  async read(): Promise<Received | undefined> {
    while (this.#events.length === 0 && this.#end === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const events = this.#events;
    this.#events = [];
    if (events.length > 0) return { events };
    if (typeof this.#end === "object") throw this.#end.error;
    return this.#end === "over" ? { events, isOver: true } : undefined;
  }
}

/** Waits for the promise, or throws the signal's reason if it is aborted first. */
async function endedBy<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop);
  });
  try {
    signal.throwIfAborted();
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
