// Events of a turn over server-sent events: one request for each connection.

import { isLast, type Received, SilenceError, type TurnConnection, viewedOf } from "./connection.ts";
import { ApiError } from "./error.ts";
import { SseReader } from "./sse.ts";

/** Opens a stream of events; an implementation of `OpenEvents`. */
export async function openStream(
  request: (signal: AbortSignal) => Promise<Response>,
  signal: AbortSignal,
  silenceMs: number,
): Promise<TurnConnection | undefined> {
  const watch = new SilenceWatch(signal, silenceMs);
  try {
    const response = await request(watch.signal);
    if (response.status !== 204) {
      if (!response.ok) throw await ApiError.of(response);
      if (!isStream(response)) throw new NotAStreamError(response);
      return new EventStream(response.body.getReader(), watch);
    }
  } catch (error) {
    watch.stop();
    throw watch.reasonOf(error);
  }
  watch.stop();
  return undefined;
}

class EventStream implements TurnConnection {
  readonly #reader = new SseReader();
  readonly #body: ReadableStreamDefaultReader<Uint8Array>;
  readonly #watch: SilenceWatch;

  constructor(body: ReadableStreamDefaultReader<Uint8Array>, watch: SilenceWatch) {
    this.#body = body;
    this.#watch = watch;
  }

  async read(): Promise<Received | undefined> {
    this.#watch.wait();
    try {
      const { done, value } = await this.#body.read();
      return done ? undefined : this.#items(value);
    } catch (error) {
      throw this.#watch.reasonOf(error);
    } finally {
      // Any byte is a heartbeat. While the consumer requests no event, none is overdue.
      this.#watch.rest();
    }
  }

  /** Parses the events in these bytes. Events before an unreadable one are not lost. */
  #items(bytes: Uint8Array): Received {
    const received: Received = { events: [] };
    try {
      for (const item of this.#reader.feed(bytes)) {
        if (item.kind === "retry") received.retryMs = item.ms;
        if (item.kind !== "event") continue;
        const viewed = viewedOf(item.data);
        received.events.push(viewed);
        if (isLast(viewed)) break;
      }
    } catch (error) {
      received.failure = { error };
    }
    return received;
  }
}

/** Ends a request over which nothing comes for too long. */
class SilenceWatch {
  readonly signal: AbortSignal;
  readonly #silence = new AbortController();
  readonly #silenceMs: number;
  #timer: ReturnType<typeof setTimeout>;
  /** Start of the current wait. One timer checks it: setting a timer for each token costs more than reading the token. */
  #since: number | undefined = performance.now();

  constructor(signal: AbortSignal, silenceMs: number) {
    this.#silenceMs = silenceMs;
    this.signal = AbortSignal.any([this.#silence.signal, signal]);
    this.#timer = setTimeout(this.#look, silenceMs);
    signal.addEventListener("abort", this.stop, { once: true });
  }

  wait(): void {
    this.#since = performance.now();
  }

  rest(): void {
    this.#since = undefined;
  }

  readonly stop = (): void => clearTimeout(this.#timer);

  /** The silence, if it has ended the request. */
  reasonOf(error: unknown): unknown {
    return this.#silence.signal.aborted ? this.#silence.signal.reason : error;
  }

  readonly #look = (): void => {
    const left =
      this.#since === undefined ? this.#silenceMs : this.#since + this.#silenceMs - performance.now();
    if (left > 0) this.#timer = setTimeout(this.#look, left);
    else this.#silence.abort(new SilenceError(this.#silenceMs));
  };
}

/** A proxy answered instead of the server. */
export class NotAStreamError extends Error {
  override readonly name = "NotAStreamError";
  constructor(response: Response) {
    super(`no stream of events, but ${response.headers.get("content-type") ?? "nothing"}`);
  }
}

function isStream(response: Response): response is Response & { body: ReadableStream<Uint8Array> } {
  return (
    response.body !== null && (response.headers.get("content-type") ?? "").startsWith("text/event-stream")
  );
}
