import type { ViewerEvent } from "./api.ts";
import { ApiError } from "./error.ts";
import { SseReader } from "./sse.ts";
import { wait, waitBefore } from "./waiting.ts";

/** How a turn is followed. */
export interface FollowOptions {
  /** The number of the last event that was seen; absent = from the first. */
  after?: number | undefined;
  /** Begin with a `snapshot`, the message as it is now, in place of the events that led to it. Not together with `after`. */
  snapshot?: boolean | undefined;
  /** Ends it: iteration throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** A connection that brings nothing for so long is taken for dead. Default {@link SILENCE_MS}. */
  silenceMs?: number | undefined;
  /** So many failures without anything new between them, and iteration throws. Default: never. */
  failuresMax?: number | undefined;
  /** Is told how the connection is. */
  onConnection?: ((connection: Connection) => void) | undefined;
}

/** How the connection is. */
export type Connection =
  | { state: "connecting" }
  | { state: "open" }
  /** It is away, which loses nothing; after `ms` it is tried again. */
  | { state: "waiting"; failures: number; ms: number; error: unknown };

/** Why there is nothing more. */
export type Ended =
  /** The last event, `stream_end`, has been given, or a message that has it. */
  | { reason: "stream_end" }
  /** 204: the turn has ended, and `after` was its last event. */
  | { reason: "nothing_more" }
  /** 404: there is no such turn, or it is another user's. */
  | { reason: "not_found"; error: ApiError }
  /** 410: its events are no longer kept. */
  | { reason: "gone"; error: ApiError }
  /** Whoever iterated has left, by `break` or by the signal. */
  | { reason: "left" }
  /** It cannot go on: a key that is not valid, an answer that is no stream of ours, `failuresMax`. */
  | { reason: "failed"; error: unknown };

/** The server gives a sign of life every 10 s (`heartbeat_ms`). */
export const SILENCE_MS = 25_000;
/** What a browser would wait, too, until the server says something else (`retry:`). */
const RETRY_MS = 1_000;

/**
 * The events of a turn, each once and in order, over any number of connections.
 *
 * Iterate it once. It ends behind `stream_end`; a turn that is not there (404) or no longer kept (410) throws its
 * {@link ApiError}. `snapshot` and `resync` come as what they are: messages that stand for all events up to their `last_seq`.
 */
export class Follow implements AsyncIterableIterator<ViewerEvent, undefined, undefined> {
  readonly turnId: string;
  #lastSeq: number | undefined;
  #ended: Ended | undefined;
  readonly #options: FollowOptions;
  readonly #open: Open;
  readonly #events: AsyncGenerator<ViewerEvent, undefined, undefined>;
  /** Closes the connection that there is. */
  #connection: AbortController | undefined;
  #retryMs = RETRY_MS;
  #failures = 0;
  #isLeft = false;

  constructor(turnId: string, open: Open, options: FollowOptions = {}) {
    this.turnId = turnId;
    this.#open = open;
    this.#options = options;
    this.#lastSeq = options.after;
    this.#events = this.#all();
  }

  /** The number of the last event that was given: go on from there with `after`. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  /** Why there is nothing more; undefined while there may be. */
  get ended(): Ended | undefined {
    return this.#ended;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ViewerEvent, undefined>> {
    return this.#events.next();
  }

  /** Leaves the turn, which goes on without this viewer. */
  return(): Promise<IteratorResult<ViewerEvent, undefined>> {
    this.#isLeft = true;
    this.#ended ??= { reason: "left" };
    // A `next` that waits for the network would keep the generator from ending.
    this.#connection?.abort();
    return this.#events.return(undefined);
  }

  async *#all(): AsyncGenerator<ViewerEvent, undefined, undefined> {
    const { signal, onConnection, failuresMax } = this.#options;
    try {
      while (this.#ended === undefined) {
        signal?.throwIfAborted();
        onConnection?.({ state: "connecting" });
        let failure: unknown;
        try {
          yield* this.#oneConnection();
          // Closed without its last event: the server is about to stop, and another will go on.
          failure = new Error("the stream ended before the turn did");
        } catch (error) {
          if (this.#isLeft) return undefined;
          signal?.throwIfAborted();
          if (!isPassing(error)) throw error;
          failure = error;
        }
        if (this.#ended !== undefined) return undefined;
        this.#failures += 1;
        if (this.#failures >= (failuresMax ?? Number.POSITIVE_INFINITY)) throw failure;
        const asked = failure instanceof ApiError ? (failure.retryAfter ?? 0) * 1_000 : 0;
        const ms = Math.max(asked, waitBefore(this.#failures, this.#retryMs));
        onConnection?.({ state: "waiting", failures: this.#failures, ms, error: failure });
        this.#connection = new AbortController();
        const signals = [this.#connection.signal, ...(signal ? [signal] : [])];
        await wait(ms, AbortSignal.any(signals)).catch((reason: unknown) => {
          if (!this.#isLeft) throw reason;
        });
      }
    } catch (error) {
      this.#ended ??= signal?.aborted ? { reason: "left" } : whyOf(error);
      throw error;
    } finally {
      this.#ended ??= { reason: "left" };
      this.#connection?.abort();
    }
    return undefined;
  }

  /** What one connection brings that is new. Throws when it breaks. */
  async *#oneConnection(): AsyncGenerator<ViewerEvent, void, undefined> {
    const { signal, onConnection } = this.#options;
    const connection = new AbortController();
    this.#connection = connection;
    const silenceMs = this.#options.silenceMs ?? SILENCE_MS;
    // Since when something is waited for; one timer looks at it, for one that is set with every token costs more than reading it.
    let since: number | undefined = performance.now();
    const look = (): void => {
      const left = since === undefined ? silenceMs : since + silenceMs - performance.now();
      if (left > 0) timer = setTimeout(look, left);
      else connection.abort(new Silence(`nothing came for ${silenceMs} ms`));
    };
    let timer = setTimeout(look, silenceMs);
    const signals = [connection.signal, ...(signal ? [signal] : [])];
    try {
      const response = await this.#open(this.#from(), AbortSignal.any(signals));
      if (response.status === 204) {
        this.#ended = { reason: "nothing_more" };
        return;
      }
      if (!response.ok) throw await ApiError.of(response);
      if (!isStream(response)) throw new NoStream(response);
      onConnection?.({ state: "open" });
      const reader = new SseReader();
      const body = response.body.getReader();
      for (;;) {
        since = performance.now();
        const { done, value } = await body.read();
        if (done) return;
        // Whatever comes is a sign of life. While nobody asks for the next event, none is missed.
        since = undefined;
        for (const item of reader.feed(value)) {
          if (item.kind === "retry") this.#retryMs = item.ms;
          if (item.kind !== "event") continue;
          const viewed = viewedOf(item.data);
          if (!this.#isNew(viewed)) continue;
          this.#failures = 0;
          if (isLast(viewed)) this.#ended = { reason: "stream_end" };
          yield viewed;
          if (this.#ended !== undefined) return;
        }
      }
    } catch (error) {
      throw connection.signal.aborted ? connection.signal.reason : error;
    } finally {
      clearTimeout(timer);
      connection.abort();
    }
  }

  #from(): From {
    if (this.#lastSeq !== undefined) return { after: this.#lastSeq };
    return this.#options.snapshot ? { from: "snapshot" } : {};
  }

  /** Takes its number, if it is new. */
  #isNew(viewed: ViewerEvent): boolean {
    switch (viewed.type) {
      case "snapshot":
      case "resync":
        // May be lower than what was seen: a log can lose its last events in a power cut.
        this.#lastSeq = viewed.last_seq;
        return true;
      default:
        // What has no number is in no log, and so never doubled.
        if (!("seq" in viewed)) return true;
        if (viewed.seq <= (this.#lastSeq ?? 0)) return false;
        this.#lastSeq = viewed.seq;
        return true;
    }
  }
}

/** Where a connection begins. */
export type From = { after?: number; from?: "snapshot" };
/** Asks for the events of the turn from there. */
export type Open = (from: From, signal: AbortSignal) => Promise<Response>;

class Silence extends Error {
  override readonly name = "Silence";
}

/** Something before the server answered in its place. */
class NoStream extends Error {
  override readonly name = "NoStream";
  constructor(response: Response) {
    super(`no stream of events, but ${response.headers.get("content-type") ?? "nothing"}`);
  }
}

function isStream(response: Response): response is Response & { body: ReadableStream<Uint8Array> } {
  return (
    response.body !== null && (response.headers.get("content-type") ?? "").startsWith("text/event-stream")
  );
}

function viewedOf(data: string): ViewerEvent {
  const viewed: ViewerEvent | null = JSON.parse(data);
  if (typeof viewed?.type !== "string") throw new SyntaxError(`no event: ${data.slice(0, 200)}`);
  return viewed;
}

function isLast(viewed: ViewerEvent): boolean {
  switch (viewed.type) {
    case "stream_end":
      return true;
    case "snapshot":
    case "resync":
      return viewed.message.status !== undefined;
    default:
      return false;
  }
}

/** Whether trying again may help. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500 || [408, 425, 429].includes(error.status);
  // What `fetch` and a body throw when the network fails is a TypeError; data that is no JSON is a SyntaxError.
  return error instanceof TypeError || error instanceof Silence || error instanceof NoStream;
}

function whyOf(error: unknown): Ended {
  if (error instanceof ApiError && error.status === 404) return { reason: "not_found", error };
  if (error instanceof ApiError && error.status === 410) return { reason: "gone", error };
  return { reason: "failed", error };
}
