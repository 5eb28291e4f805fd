// Parser of server-sent events, following the HTML standard ("9.2.6 Interpreting an event stream"), for bytes in any pieces.

/** One item of a stream of events. */
export type SseItem =
  | {
      kind: "event";
      /** Name of the event; `message` by default. */
      event: string;
      data: string;
      /** The last id in the stream, possibly of an earlier event; empty = none. */
      id: string;
    }
  | {
      /** Wait before the next connection. */
      kind: "retry";
      ms: number;
    }
  | {
      /** A line that is not a field; servers send it as a heartbeat. */
      kind: "comment";
      text: string;
    };

/** Longer events or lines are refused: such a stream is not from our server. */
export const EVENT_CHARS_MAX = 128 * 1024 * 1024;

const CR = "\r";
const LF = "\n";

/** Parses a stream of events piece by piece. An incomplete event at the end is dropped. */
export class SseReader {
  /** The decoder removes a leading BOM and replaces invalid UTF-8 by U+FFFD. */
  readonly #decoder = new TextDecoder("utf-8");
  /** Pieces of the current line. */
  #line: string[] = [];
  #lineChars = 0;
  /** A CR ends a line at once; an LF right after it belongs to it. */
  #endedWithCr = false;
  #event = "";
  #data: string[] = [];
  #dataChars = 0;
  #id = "";

  /**
   * The items that these bytes complete.
   *
   * @throws RangeError if an event is larger than {@link EVENT_CHARS_MAX}.
   */
  feed(bytes: Uint8Array): SseItem[] {
    const items: SseItem[] = [];
    const text = this.#decoder.decode(bytes, { stream: true });
    let from = 0;
    if (this.#endedWithCr && text.length > 0) {
      this.#endedWithCr = false;
      if (text[0] === LF) from = 1;
    }
    // The next of each, so that neither is searched twice.
    let cr = text.indexOf(CR, from);
    let lf = text.indexOf(LF, from);
    while (cr >= 0 || lf >= 0) {
      const isCr = cr >= 0 && (lf < 0 || cr < lf);
      const end = isCr ? cr : lf;
      this.#keep(text.slice(from, end));
      const line = this.#line.length === 1 ? (this.#line[0] ?? "") : this.#line.join("");
      this.#line = [];
      this.#lineChars = 0;
      const item = this.#take(line);
      if (item) items.push(item);
      from = end + 1;
      if (isCr) {
        if (from === text.length) this.#endedWithCr = true;
        else if (text[from] === LF) from += 1;
        cr = text.indexOf(CR, from);
      }
      if (lf >= 0 && lf < from) lf = text.indexOf(LF, from);
    }
    this.#keep(text.slice(from));
    return items;
  }

  #keep(piece: string): void {
    this.#lineChars += piece.length;
    if (this.#lineChars + this.#dataChars > EVENT_CHARS_MAX) {
      throw new RangeError(`an event has more than ${EVENT_CHARS_MAX} characters`);
    }
    this.#line.push(piece);
  }

  #take(line: string): SseItem | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return { kind: "comment", text: line.slice(line[1] === " " ? 2 : 1) };
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    switch (field) {
      case "event":
        this.#event = value;
        return undefined;
      case "data":
        this.#data.push(value);
        this.#dataChars += value.length + 1;
        return undefined;
      case "id":
        if (!value.includes("\0")) this.#id = value;
        return undefined;
      case "retry":
        return /^[0-9]+$/.test(value) ? { kind: "retry", ms: Number(value) } : undefined;
      default:
        return undefined;
    }
  }

  #dispatch(): SseItem | undefined {
    const [event, data] = [this.#event, this.#data];
    this.#event = "";
    this.#data = [];
    this.#dataChars = 0;
    // Without `data` there is no event, though an `id` holds.
    if (data.length === 0) return undefined;
    return { kind: "event", event: event || "message", data: data.join(LF), id: this.#id };
  }
}
