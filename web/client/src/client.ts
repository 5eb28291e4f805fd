import { NOT_JSON, type Operations, type StartTurn, type TurnStarted } from "./api.ts";
import { ApiError } from "./error.ts";
import { Follow, type FollowOptions } from "./follow.ts";
import { wait, waitBefore } from "./waiting.ts";

/** Where the server is, and who asks. */
export interface ThroughlineOptions {
  /** `http://127.0.0.1:8787`; empty = where the page comes from. */
  baseUrl: string | URL;
  /** What `throughline serve` prints, or a key of `throughline keys create`. */
  key?: string | undefined;
  /** In place of the global one. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** What can be asked: `"GET /v1/tools"`. */
export type Operation = keyof Operations;
/** What it answers when all is well. */
export type Answer<O extends Operation> = Operations[O]["response"];
type Taken<O extends Operation> = Omit<Operations[O], "response">;

/** What may be said with every call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** The same key with the same body is the same request: it may be sent again. For `POST /v1/turns`. */
  idempotencyKey?: string | undefined;
}

/** Path, query and body, so far as the operation has them. They may be left out if none of them must be there. */
export type CallArguments<O extends Operation> =
  Partial<Taken<O>> extends Taken<O> ? [options?: Taken<O> & CallOptions] : [options: Taken<O> & CallOptions];

/** How a turn is begun and followed. */
export interface StartOptions extends FollowOptions {
  /** Absent = one is made, so that a request that was lost can be sent again without a second turn. */
  idempotencyKey?: string | undefined;
}

/** A turn that runs, and its events. */
export type Started = TurnStarted & { events: Follow };

/** So often a request that is safe to be sent again is sent. */
const ATTEMPTS_MAX = 4;
/** Before the second attempt. */
const FIRST_WAIT_MS = 250;

/** What any operation may take, as this file reads it. */
interface Asked extends CallOptions {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
}

/** A client of one server. */
export class Throughline {
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ThroughlineOptions) {
    this.#base = String(options.baseUrl).replace(/\/+$/, "");
    this.#key = options.key;
    // Browsers refuse to run it as a method of anything but the window.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /**
   * Asks for one thing.
   *
   * @throws ApiError if the server refuses; what `fetch` throws if it is not reached.
   */
  async call<O extends Operation>(operation: O, ...[options]: CallArguments<O>): Promise<Answer<O>> {
    const asked: Asked = { ...options };
    const [method = "GET", path = ""] = operation.split(" ", 2);
    const headers = this.#headers("application/json, */*;q=0.1");
    const body = asked.body === undefined ? undefined : bodyOf(asked.body, headers);
    if (asked.idempotencyKey !== undefined) headers.set("idempotency-key", asked.idempotencyKey);
    const response = await this.#fetch(this.#url(path, asked), {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(asked.signal ? { signal: asked.signal } : {}),
    });
    if (!response.ok) throw await ApiError.of(response);
    // The types say what is in there: they come from the same document as the server's answers.
    return (await read(operation, response)) as Answer<O>;
  }

  /** The events of a turn from any place in it, over any number of connections. Nothing happens before it is iterated. */
  follow(turnId: string, options: FollowOptions = {}): Follow {
    const open = (from: Record<string, unknown>, signal: AbortSignal): Promise<Response> => {
      const url = this.#url("/v1/turns/{turn_id}/events", { path: { turn_id: turnId }, query: from });
      return this.#fetch(url, { headers: this.#headers("text/event-stream"), cache: "no-store", signal });
    };
    return new Follow(turnId, open, options);
  }

  /**
   * Begins a turn, and follows it. A request that is lost on the way is sent again; there is one turn.
   *
   * @throws ApiError if the server refuses; what `fetch` throws if it is not reached.
   */
  async start(turn: StartTurn, options: StartOptions = {}): Promise<Started> {
    const { idempotencyKey = newKey(), ...follow } = options;
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
        const asked = error instanceof ApiError ? (error.retryAfter ?? 0) * 1_000 : 0;
        await wait(Math.max(asked, waitBefore(attempt, FIRST_WAIT_MS)), options.signal);
      }
    }
  }

  #headers(accept: string): Headers {
    const headers = new Headers({ accept });
    if (this.#key !== undefined) headers.set("authorization", `Bearer ${this.#key}`);
    return headers;
  }

  #url(template: string, { path = {}, query = {} }: Asked): string {
    const at = template.replace(/\{([^}]+)\}/g, (_, name: string) => segment(name, path[name]));
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) words.append(name, String(value));
    }
    return `${this.#base}${at}${words.size > 0 ? `?${words}` : ""}`;
  }
}

/** A part of a path. What URLs take for a direction would lead elsewhere. */
function segment(name: string, value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  if (text === "" || text === "." || text === "..") throw new RangeError(`\`${name}\` cannot be "${text}"`);
  return encodeURIComponent(text);
}

/** A body as `fetch` takes it; says in the headers what it is. */
function bodyOf(body: unknown, headers: Headers): BodyInit {
  // Its boundary is known to `fetch` alone.
  if (body instanceof FormData) return body;
  if (body instanceof Blob || body instanceof Uint8Array) {
    headers.set("content-type", (body instanceof Blob && body.type) || "application/octet-stream");
    return body as Blob | Uint8Array<ArrayBuffer>;
  }
  // The only text that an operation takes.
  headers.set("content-type", typeof body === "string" ? "application/jsonl" : "application/json");
  return typeof body === "string" ? body : JSON.stringify(body);
}

async function read(operation: Operation, response: Response): Promise<unknown> {
  if (response.status === 204) return undefined;
  switch (NOT_JSON[operation]) {
    case "text":
      return response.text();
    case "bytes":
      return response.blob();
    case "events":
      return response.body ?? undefined;
    default: {
      const text = await response.text();
      return text === "" ? undefined : JSON.parse(text);
    }
  }
}

function isAway(status: number): boolean {
  return status === 502 || status === 503 || status === 504;
}

/** 128 random bits. `crypto.randomUUID` is not there for pages without TLS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
