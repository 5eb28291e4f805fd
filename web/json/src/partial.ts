// Incremental parser of JSON: complete keys, the open value, and a formatted text as far as it is certain. Each character is read
// once; more text never changes earlier results. Nothing throws: invalid JSON is `broken`.

/** `open`: incomplete. `complete`: a whole object. `broken`: invalid from some character on. */
export type PartialState = "empty" | "open" | "complete" | "broken";

/** Path of the open value: keys of objects and indexes of arrays, from the outside. */
export type Path = readonly (string | number)[];

/** A key of the outermost object. */
export interface PartialEntry {
  readonly key: string;
  readonly isComplete: boolean;
  /** The value on one line, once complete; only its beginning, if it is long. */
  readonly value: string;
}

/** Longer values are shortened. */
const VALUE_CHARS_MAX = 60;
/** Deeper levels are not indented: the output would grow with the square of the input. */
const INDENTED_LEVELS_MAX = 32;

type Expected = "value" | "first value" | "key" | "first key" | "colon" | "next" | "end";

interface Level {
  readonly isList: boolean;
  /** Current key as written, or index of the current item. */
  at: string | number;
}

/** An incomplete string, number or keyword. */
interface OpenToken {
  readonly kind: "string" | "key" | "word";
  text: string;
  /** An incomplete escape. */
  escape: string;
}

export class PartialJson {
  /** Number of characters that were read, to measure the cost. */
  readChars = 0;
  #given = "";
  #expected: Expected = "value";
  #isBroken = false;
  #levels: Level[] = [];
  #token: OpenToken | undefined;
  #pretty = "";
  #entries: PartialEntry[] = [];
  #value = "";

  /** Reads the whole text so far. */
  read(text: string): this {
    if (!text.startsWith(this.#given)) this.#forget();
    const from = this.#given.length;
    this.#given = text;
    for (let at = from; at < text.length && !this.#isBroken; at += 1) {
      this.readChars += 1;
      this.#take(text.charAt(at));
    }
    return this;
  }

  get state(): PartialState {
    if (this.#isBroken) return "broken";
    if (this.#expected === "end" && this.#token === undefined) return "complete";
    return this.#pretty === "" ? "empty" : "open";
  }

  /** Keys of the outermost object in order; only the last may be open. */
  get entries(): readonly PartialEntry[] {
    return this.#entries;
  }

  /** Indented text, as far as it is certain. More input only appends to it. */
  get pretty(): string {
    return this.#pretty;
  }

  /** Path of the open value; `undefined`: none. */
  get path(): Path | undefined {
    const state = this.state;
    return state === "open"
      ? this.#levels.map(({ isList, at }) => (isList ? at : decoded(String(at))))
      : undefined;
  }

  #forget(): void {
    this.#given = "";
    this.#expected = "value";
    this.#isBroken = false;
    this.#levels = [];
    this.#token = undefined;
    this.#pretty = "";
    this.#entries = [];
    this.#value = "";
  }

  #take(char: string): void {
    if (this.#token !== undefined) {
      if (this.#token.kind !== "word") return this.#takeInString(this.#token, char);
      if (/[-+.0-9a-zA-Z]/.test(char)) return this.#takeInWord(this.#token, char);
      if (!isWord(this.#token.text)) return this.#break();
      this.#endValue();
    }
    if (char === " " || char === "\n" || char === "\r" || char === "\t") return;
    this.#begin(char);
  }

  #begin(char: string): void {
    switch (this.#expected) {
      case "first key":
        if (char === "}") return this.#close(char);
        return char === '"' ? this.#beginString("key") : this.#break();
      case "key":
        return char === '"' ? this.#beginString("key") : this.#break();
      case "colon":
        if (char !== ":") return this.#break();
        this.#write(": ");
        this.#expected = "value";
        if (this.#levels.length === 1) this.#value = "";
        return;
      case "first value":
        return char === "]" ? this.#close(char) : this.#beginValue(char);
      case "value":
        return this.#beginValue(char);
      case "next":
        return this.#goOn(char);
      case "end":
        return this.#break();
    }
  }

  #goOn(char: string): void {
    const level = this.#levels.at(-1);
    if (level === undefined || char !== ",") return this.#close(char);
    this.#write(",");
    if (typeof level.at === "number") level.at += 1;
    this.#expected = level.isList ? "value" : "key";
  }

  #beginValue(char: string): void {
    const isOuter = this.#levels.length === 0;
    if (isOuter && char !== "{") return this.#break();
    if (this.#levels.at(-1)?.isList === true) this.#newLine();
    if (char === "{" || char === "[") {
      this.#write(char);
      this.#levels.push({ isList: char === "[", at: char === "[" ? 0 : "" });
      this.#expected = char === "[" ? "first value" : "first key";
    } else if (char === '"') {
      this.#beginString("string");
    } else if (/[-0-9tfn]/.test(char)) {
      this.#token = { kind: "word", text: "", escape: "" };
      this.#writeToken(this.#token, char);
    } else {
      this.#break();
    }
  }

  #beginString(kind: "string" | "key"): void {
    if (kind === "key") this.#newLine();
    this.#token = { kind, text: "", escape: "" };
    this.#writeToken(this.#token, '"');
  }

  #takeInString(token: OpenToken, char: string): void {
    if (token.escape !== "") {
      const written = token.escape + char;
      if (!/^\\(["\\/bfnrt]|u[0-9a-fA-F]{0,4})$/.test(written)) return this.#break();
      token.escape = written.length === (written.charAt(1) === "u" ? 6 : 2) ? "" : written;
      return this.#writeToken(token, char);
    }
    if (char < " ") return this.#break();
    this.#writeToken(token, char);
    if (char === "\\") token.escape = char;
    else if (char === '"') this.#endString(token);
  }

  #endString({ kind, text }: OpenToken): void {
    if (kind !== "key") return this.#endValue();
    this.#token = undefined;
    this.#expected = "colon";
    const level = this.#levels.at(-1);
    if (level !== undefined) level.at = text;
    if (this.#levels.length === 1) {
      this.#entries = [...this.#entries, { key: decoded(text), isComplete: false, value: "" }];
    }
  }

  #takeInWord(token: OpenToken, char: string): void {
    if (couldBeWord(token.text + char)) this.#writeToken(token, char);
    else this.#break();
  }

  #close(char: string): void {
    const level = this.#levels.at(-1);
    if (level === undefined || char !== (level.isList ? "]" : "}")) return this.#break();
    this.#levels.pop();
    if (!this.#expected.startsWith("first")) this.#newLine();
    this.#write(char);
    this.#endValue();
  }

  #endValue(): void {
    this.#token = undefined;
    this.#expected = this.#levels.length === 0 ? "end" : "next";
    const last = this.#entries.at(-1);
    if (this.#levels.length !== 1 || last === undefined) return;
    this.#entries = [...this.#entries.slice(0, -1), { ...last, isComplete: true, value: this.#value }];
  }

  #newLine(): void {
    this.#pretty += `\n${"  ".repeat(Math.min(this.#levels.length, INDENTED_LEVELS_MAX))}`;
  }

  #write(text: string): void {
    this.#pretty += text;
    if (this.#levels.length > 0 && this.#value.length < VALUE_CHARS_MAX) this.#value += text;
  }

  #writeToken(token: OpenToken, char: string): void {
    token.text += char;
    this.#write(char);
  }

  #break(): void {
    this.#isBroken = true;
  }
}

const WORDS = ["true", "false", "null"];
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
const NUMBER_BEGUN = /^-?(0|[1-9]\d*)?((?<=\d)\.\d*)?((?<=\d)[eE][-+]?\d*)?$/;

function isWord(text: string): boolean {
  return WORDS.includes(text) || NUMBER.test(text);
}

function couldBeWord(text: string): boolean {
  // A number with thousands of digits is refused, because each digit is read again.
  return text.length < 400 && (WORDS.some((word) => word.startsWith(text)) || NUMBER_BEGUN.test(text));
}

/** A key without quotes; an incomplete one as written. */
function decoded(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}
