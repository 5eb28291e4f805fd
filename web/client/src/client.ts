import type { StartTurn, TurnStarted } from "./api.ts";
import type { OpenEvents } from "./connection.ts";
import { ApiError } from "./error.ts";
import { openStream } from "./event-stream.ts";
import { Follow, type FollowOptions, SILENCE_MS } from "./follow.ts";
import type { FileOperation, Operation, OperationInput, OperationResponse } from "./operations.ts";
import { TurnSockets, type WebSocketConstructor } from "./sockets.ts";
import { wait, waitBefore } from "./waiting.ts";

/** Address of the server, and the key for it. */
export interface ThroughlineOptions {
  /** For example `http://127.0.0.1:8787`; empty = the origin of the page. */
  baseUrl: string | URL;
  /** The token that `throughline serve` prints, or a key from `throughline keys create`. */
  key?: string | undefined;
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /**
   * `WebSocket`, to follow all turns over one connection. Pages should have it: a browser opens six connections to a server that speaks
   * HTTP/1.1, and without it each turn that is followed holds one of them. Where no WebSocket can be opened, nothing changes.
   */
  webSocket?: WebSocketConstructor | undefined;
}

/** Options of every call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Requests with the same key and body count once, so they can be retried. For `POST /v1/turns`. */
  idempotencyKey?: string | undefined;
  /** The request goes out even if its page is closed meanwhile. */
  keepalive?: boolean | undefined;
}

/** Path, query and body, as far as the operation has them. Optional if none of them is required. */
export type CallArguments<O extends Operation> =
  Partial<OperationInput<O>> extends OperationInput<O>
    ? [options?: OperationInput<O> & CallOptions]
    : [options: OperationInput<O> & CallOptions];

/** Options for starting and following a turn. */
export interface StartOptions extends FollowOptions {
  /** By default a random key, so that a lost request can be retried without starting a second turn. */
  idempotencyKey?: string | undefined;
}

/** A running turn with its events. */
export type StartedTurn = TurnStarted & { events: Follow };

/** Attempts for a request that is safe to retry. */
const ATTEMPTS_MAX = 4;
/** Wait before the second attempt. */
const FIRST_WAIT_MS = 250;

/** Parts of any operation's request. */
interface RequestParts extends CallOptions {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
}

/** A client of one server. */
export class Throughline {
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #fetch: typeof globalThis.fetch;
  readonly #sockets: TurnSockets | undefined;

  constructor(options: ThroughlineOptions) {
    this.#base = String(options.baseUrl).replace(/\/+$/, "");
    this.#key = options.key;
    // Browsers refuse to run it as a method of anything but the window.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    const { webSocket } = options;
    this.#sockets = webSocket && new TurnSockets(webSocket, () => this.#socketAddress());
  }

  /**
   * Sends one request.
   *
   * @throws ApiError if the server refuses; what `fetch` throws if it is not reached.
   */
  async call<O extends Operation>(
    operation: O,
    ...[options]: CallArguments<O>
  ): Promise<OperationResponse<O>> {
    const parts: RequestParts = { ...options };
    const [method = "GET", path = ""] = operation.split(" ", 2);
    const headers = this.#headers("application/json, */*;q=0.1");
    const body = parts.body === undefined ? undefined : bodyOf(parts.body, headers);
    if (parts.idempotencyKey !== undefined) headers.set("idempotency-key", parts.idempotencyKey);
    const response = await this.#fetch(this.#url(path, parts), {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(parts.signal ? { signal: parts.signal } : {}),
      ...(parts.keepalive ? { keepalive: true } : {}),
    });
    if (!response.ok) throw await ApiError.of(response);
    // The types come from the same document as the server's responses.
    return (await read(operation, response)) as OperationResponse<O>;
  }

  /** The events of a turn from any position, over any number of connections. Connects when it is first iterated. */
  follow(turnId: string, options: FollowOptions = {}): Follow {
    const path = { turn_id: turnId };
    const open: OpenEvents = async (from, leave, silenceMs) => {
      const connection = (await this.#sockets?.follow(turnId, from, leave, silenceMs)) ?? "none";
      if (connection !== "none") return connection;
      const url = this.#url("/v1/turns/{turn_id}/events", { path, query: from });
      const headers = this.#headers("text/event-stream");
      const request = (signal: AbortSignal) => this.#fetch(url, { headers, cache: "no-store", signal });
      return await openStream(request, leave, silenceMs);
    };
    return new Follow(turnId, open, options);
  }

  /** Opens the WebSocket ahead of a turn, which then need not wait for it. Does nothing without one, and fails silently. */
  prepare(): void {
    this.#sockets?.prepare(SILENCE_MS);
  }

  /**
   * Starts a turn and follows it. A lost request is retried; it never starts a second turn.
   *
   * @throws ApiError if the server refuses; what `fetch` throws if it is not reached.
   */
  async start(turn: StartTurn, options: StartOptions = {}): Promise<StartedTurn> {
    const { idempotencyKey = newKey(), ...follow } = options;
    this.prepare();
    for (let attempt = 1; ; attempt += 1) {
      try {
        const started = await this.call("POST /v1/turns", {
          body: turn,
          idempotencyKey,
          signal: options.signal,
        });
        return { ...started, events: this.follow(started.turn_id, follow) };
      } catch (error) {
        const isLost = error instanceof TypeError || (error instanceof ApiError && isAway(error.status));
        if (!isLost || attempt === ATTEMPTS_MAX) throw error;
        const parts = error instanceof ApiError ? (error.retryAfter ?? 0) * 1_000 : 0;
        await wait(Math.max(parts, waitBefore(attempt, FIRST_WAIT_MS)), options.signal);
      }
    }
  }

  /** A browser sends no header of ours with a WebSocket, so a ticket in the address stands for the key, once. */
  async #socketAddress(): Promise<URL> {
    const url = new URL(`${this.#base}/v1/ws`, globalThis.location?.href);
    url.protocol = url.protocol.replace("http", "ws");
    if (this.#key !== undefined) url.searchParams.set("ticket", (await this.call("POST /v1/tickets")).ticket);
    return url;
  }

  #headers(accept: string): Headers {
    const headers = new Headers({ accept });
    if (this.#key !== undefined) headers.set("authorization", `Bearer ${this.#key}`);
    return headers;
  }

  #url(template: string, { path = {}, query = {} }: RequestParts): string {
    const at = template.replace(/\{([^}]+)\}/g, (_, name: string) => segment(name, path[name]));
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) words.append(name, String(value));
    }
    return `${this.#base}${at}${words.size > 0 ? `?${words}` : ""}`;
  }
}

/** A segment of a path. `.` and `..` would resolve to another path. */
function segment(name: string, value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  if (text === "" || text === "." || text === "..") throw new RangeError(`\`${name}\` cannot be "${text}"`);
  return encodeURIComponent(text);
}

/** A body as `fetch` takes it; sets its content type. */
function bodyOf(body: unknown, headers: Headers): BodyInit {
  // Only `fetch` knows its boundary.
  if (body instanceof FormData) return body;
  if (body instanceof Blob || body instanceof Uint8Array) {
    headers.set("content-type", (body instanceof Blob && body.type) || "application/octet-stream");
    return body as Blob | Uint8Array<ArrayBuffer>;
  }
  // The only text that an operation takes.
  headers.set("content-type", typeof body === "string" ? "application/jsonl" : "application/json");
  return typeof body === "string" ? body : JSON.stringify(body);
}

/** A file has a media type of its own, so the operation decides. A missing operation does not compile. */
const FILES: { readonly [O in FileOperation]: true } = {
  "GET /v1/files/{file_id}/content": true,
  "POST /v1/shared/file": true,
};

async function read(operation: Operation, response: Response): Promise<unknown> {
  if (response.status === 204) return undefined;
  if (Object.hasOwn(FILES, operation)) return response.blob();
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) return response.body ?? undefined;
  const text = await response.text();
  if (type.startsWith("text/") || type.startsWith("application/jsonl")) return text;
  return text === "" ? undefined : JSON.parse(text);
}

function isAway(status: number): boolean {
  return status === 502 || status === 503 || status === 504;
}

/** 128 random bits, for an idempotency key or an id. `crypto.randomUUID` is not there for pages without TLS. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
