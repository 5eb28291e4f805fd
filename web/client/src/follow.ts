import type { ViewerEvent } from "./api.ts";
import { type FollowStart, isLast, type OpenEvents, SilenceError } from "./connection.ts";
import { ApiError } from "./error.ts";
import { NotAStreamError } from "./event-stream.ts";
import { SocketLostError } from "./sockets.ts";
import { wait, waitBefore } from "./waiting.ts";

/** Options for following a turn. */
export interface FollowOptions {
  /** `seq` of the last event that was received; absent = start with the first event. */
  after?: number | undefined;
  /** Start with a `snapshot` of the message instead of the events that led to it. Not together with `after`. */
  snapshot?: boolean | undefined;
  /** Ends the iteration, which throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** A connection without any byte for this long counts as lost. Default {@link SILENCE_MS}. */
  silenceMs?: number | undefined;
  /** Iteration throws after this many failures without a new event between them. Default: never. */
  failuresMax?: number | undefined;
  /** Called when the state of the connection changes. */
  onConnection?: ((connection: ConnectionState) => void) | undefined;
}

/** State of the connection. */
export type ConnectionState =
  | { state: "connecting" }
  | { state: "open" }
  /** The connection is lost, which loses no event; the next attempt is in `ms`. */
  | { state: "waiting"; failures: number; ms: number; error: unknown };

/** Reason why the iteration has ended. */
export type FollowEnd =
  /** The last event, `stream_end`, was delivered, or a message that includes it. */
  | { reason: "stream_end" }
  /** 204: the turn has ended, and `after` was its last event. */
  | { reason: "nothing_more" }
  /** 404: the turn does not exist, or belongs to another user. */
  | { reason: "not_found"; error: ApiError }
  /** 410: its events are no longer stored. */
  | { reason: "gone"; error: ApiError }
  /** The consumer left, with `break` or the signal. */
  | { reason: "left" }
  /** It cannot continue: an invalid key, a response that is not an event stream, `failuresMax`. */
  | { reason: "failed"; error: unknown };

/** The server sends a heartbeat every 10 s (`heartbeat_ms`). */
export const SILENCE_MS = 25_000;
/** Wait between connections, as in browsers, until the server sets another one (`retry:`). */
const RETRY_MS = 1_000;

/**
 * The events of a turn, each once and in order, over any number of connections.
 *
 * Iterate it once. It ends after `stream_end`; a missing turn (404) or one whose events are no longer stored (410) throws
 * its {@link ApiError}. `snapshot` and `resync` are delivered as messages that replace all events up to their `last_seq`.
 */
export class Follow implements AsyncIterableIterator<ViewerEvent, undefined, undefined> {
  readonly turnId: string;
  #lastSeq: number | undefined;
  #ended: FollowEnd | undefined;
  readonly #options: FollowOptions;
  readonly #open: OpenEvents;
  readonly #batches: AsyncGenerator<readonly ViewerEvent[], undefined, undefined>;
  /** Events of the last batch that are not delivered yet. */
  #rest: readonly ViewerEvent[] = [];
  #at = 0;
  /** `seq` of the last received event. */
  #cameSeq: number | undefined;
  /** Closes the current connection. */
  #connection: AbortController | undefined;
  #retryMs = RETRY_MS;
  #failures = 0;
  #isLeft = false;

  constructor(turnId: string, open: OpenEvents, options: FollowOptions = {}) {
    this.turnId = turnId;
    this.#open = open;
    this.#options = options;
    this.#lastSeq = options.after;
    this.#cameSeq = options.after;
    this.#batches = this.#all();
  }

  /** `seq` of the last delivered event; pass it as `after` to continue from there. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  /** Reason why the iteration has ended; undefined while it runs. */
  get ended(): FollowEnd | undefined {
    return this.#ended;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ViewerEvent, undefined>> {
    for (;;) {
      const viewed = this.#isLeft ? undefined : this.#rest[this.#at];
      if (viewed !== undefined) {
        this.#at += 1;
        this.#deliver([viewed]);
        return { done: false, value: viewed };
      }
      const { done, value } = await this.#batches.next();
      if (done) return { done, value: undefined };
      this.#rest = value;
      this.#at = 0;
    }
  }

  /**
   * The same events in the batches in which they arrive: if all of them are applied at once, this costs less than one by one.
   * Iterate either this or the object itself.
   */
  async *batches(): AsyncGenerator<readonly ViewerEvent[], undefined, undefined> {
    try {
      for (;;) {
        const { done, value } = await this.#batches.next();
        if (done) return undefined;
        this.#deliver(value);
        yield value;
      }
    } finally {
      await this.return();
    }
  }

  /** Stops following. The turn continues without this viewer. */
  return(): Promise<IteratorResult<ViewerEvent, undefined>> {
    this.#isLeft = true;
    this.#ended ??= { reason: "left" };
    // A pending `next` would prevent the generator from ending.
    this.#connection?.abort();
    return this.#batches.return(undefined).then(() => ({ done: true, value: undefined }));
  }

  /** Marks events as delivered. */
  #deliver(events: readonly ViewerEvent[]): void {
    for (const viewed of events) {
      this.#lastSeq = seqOf(viewed) ?? this.#lastSeq;
      if (isLast(viewed)) this.#ended = { reason: "stream_end" };
    }
  }

  async *#all(): AsyncGenerator<readonly ViewerEvent[], undefined, undefined> {
    const { signal, onConnection, failuresMax } = this.#options;
    try {
      while (this.#ended === undefined) {
        signal?.throwIfAborted();
        onConnection?.({ state: "connecting" });
        let failure: unknown;
        try {
          yield* this.#oneConnection();
          // Closed before its last event: the server is stopping, and the next one will continue.
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
        const requestedMs = failure instanceof ApiError ? (failure.retryAfter ?? 0) * 1_000 : 0;
        const ms = Math.max(requestedMs, waitBefore(this.#failures, this.#retryMs));
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

  /** The new events of one connection, in batches. Throws when the connection breaks. */
  async *#oneConnection(): AsyncGenerator<readonly ViewerEvent[], void, undefined> {
    const { signal, onConnection, silenceMs = SILENCE_MS } = this.#options;
    const leave = new AbortController();
    this.#connection = leave;
    const signals = [leave.signal, ...(signal ? [signal] : [])];
    try {
      const connection = await this.#open(this.#from(), AbortSignal.any(signals), silenceMs);
      if (connection === undefined) {
        this.#ended = { reason: "nothing_more" };
        return;
      }
      onConnection?.({ state: "open" });
      for (;;) {
        const received = await connection.read();
        if (received === undefined) return;
        this.#retryMs = received.retryMs ?? this.#retryMs;
        const events = this.#newOf(received.events);
        if (events.length > 0) {
          this.#failures = 0;
          yield events;
        }
        if (received.failure !== undefined) throw received.failure.error;
        if (received.isOver) this.#ended ??= { reason: "nothing_more" };
        if (this.#ended !== undefined) return;
      }
    } finally {
      leave.abort();
    }
  }

  #from(): FollowStart {
    if (this.#lastSeq !== undefined) return { after: this.#lastSeq };
    return this.#options.snapshot ? { from: "snapshot" } : {};
  }

  /** The new ones of these events, up to the last one of the turn. */
  #newOf(came: readonly ViewerEvent[]): ViewerEvent[] {
    const events = came.filter((viewed) => this.#isNew(viewed));
    const end = events.findIndex(isLast);
    return end < 0 ? events : events.slice(0, end + 1);
  }

  /** True if the event is new; remembers its number. */
  #isNew(viewed: ViewerEvent): boolean {
    const seq = seqOf(viewed);
    // An event without a number is in no log, so it is never repeated.
    if (seq === undefined) return true;
    // The number of a message may be lower than before: a log can lose its last events in a power failure.
    const isMessage = viewed.type === "snapshot" || viewed.type === "resync";
    if (!isMessage && seq <= (this.#cameSeq ?? 0)) return false;
    this.#cameSeq = seq;
    return true;
  }
}

/** Log number of the last event; `undefined`: it is not in the log. */
function seqOf(viewed: ViewerEvent): number | undefined {
  if (viewed.type === "snapshot" || viewed.type === "resync") return viewed.last_seq;
  return "seq" in viewed ? viewed.seq : undefined;
}

/** True if a retry may help. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500 || [408, 425, 429].includes(error.status);
  // What `fetch` and a body throw when the network fails is a TypeError; data that is no JSON is a SyntaxError.
  return [TypeError, SilenceError, NotAStreamError, SocketLostError].some((kind) => error instanceof kind);
}

function whyOf(error: unknown): FollowEnd {
  if (error instanceof ApiError && error.status === 404) return { reason: "not_found", error };
  if (error instanceof ApiError && error.status === 410) return { reason: "gone", error };
  return { reason: "failed", error };
}
