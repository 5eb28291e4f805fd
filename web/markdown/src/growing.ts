// Markdown of a growing text: everything far enough above the end is parsed once. Whatever the pieces, the tokens are those of the
// whole text parsed at once.

import type { Token } from "marked";
import { fenceOf, isFenceClosed, OpenFence } from "./fence.ts";
import { type Links, lex } from "./lexer.ts";
import { OpenEnd } from "./open-end.ts";

/** Tokens at the end that more text may change: the last one, and its neighbor. */
const OPEN_TOKENS = 2;
/** The tail up to this size is parsed with every piece; a single longer block, in steps proportional to its length. */
const TAIL_CHARS_MAX = 4_096;
const STEPS = 16;
/** Blocks that end at a blank line, so that later text does not change them. */
const BLOCKS_OF_LINES: ReadonlySet<string> = new Set(["paragraph", "heading", "table"]);

export class GrowingMarkdown {
  /** Characters that were lexed, to measure the cost. */
  lexedChars = 0;
  readonly #tailMax: number;
  /** The source of the tokens, as given and with normalized line ends. */
  #given = "";
  #text = "";
  /** Settled tokens, their end, and their link definitions. */
  #settled: Token[] = [];
  #settledChars = 0;
  #settledLinks: Links = {};
  /** Link definitions of the whole text. */
  #links: Links = {};
  #tail: Token[] = [];
  /** Length of the text after the settled part that the tail was parsed from. */
  #read = 0;
  #fence: OpenFence | undefined;
  #tokens: readonly Token[] = [];

  constructor(tailMax = TAIL_CHARS_MAX) {
    this.#tailMax = tailMax;
  }

  /** The tokens of the whole text. Settled ones are the same objects as before. */
  read(text: string): readonly Token[] {
    if (text === this.#given) return this.#tokens;
    // A part of the reply was removed.
    // A slice is compared as a block of memory, but `startsWith` by character, which takes ten times as long.
    if (text.slice(0, this.#given.length) !== this.#given) this.#forget();
    const isCut = this.#given.endsWith("\r");
    const piece = text.slice(this.#given.length);
    const added = (isCut && piece.startsWith("\n") ? piece.slice(1) : piece).replace(/\r\n?/g, "\n");
    // One string while both are the same: a second one would be copied with every piece.
    this.#text = added === piece && this.#text === this.#given ? text : this.#text + added;
    this.#given = text;
    if (added !== "" && !this.#growFence(added)) this.#readTail();
    return this.#tokens;
  }

  /** The tokens of a complete text, with nothing left open. */
  complete(text: string): readonly Token[] {
    this.read(text);
    if (this.#hasRest()) {
      this.#lexTail(this.#text.length - this.#settledChars);
      this.#settleTail();
      this.#publish();
    }
    return this.#tokens;
  }

  /** The open end of the text, for characters that can be shown without parsing. */
  openEnd(): OpenEnd | undefined {
    // The second half of a split line end is still missing.
    return this.#hasRest() || this.#given.endsWith("\r") ? undefined : OpenEnd.of(this.#tokens, this.#text);
  }

  #forget(): void {
    this.#given = "";
    this.#text = "";
    this.#settled = [];
    this.#settledChars = 0;
    this.#settledLinks = {};
    this.#links = {};
    this.#tail = [];
    this.#read = 0;
    this.#fence = undefined;
    this.#tokens = [];
  }

  #growFence(added: string): boolean {
    const grown = this.#fence?.grown(added);
    if (grown === undefined) return false;
    this.#tail[this.#tail.length - 1] = grown;
    this.#read += added.length;
    this.#publish();
    return true;
  }

  #readTail(): void {
    if (this.#read > 0 && this.#fence === undefined && this.#readable() === this.#read)
      return this.#publish();
    do this.#lexTail(this.#readable());
    while (this.#settleTail());
    this.#fence = OpenFence.of(this.#tail.at(-1));
    if (this.#fence !== undefined && this.#hasRest() && !this.#growFence(this.#rest())) {
      // The closing fence is outside of the readable part: otherwise the rest would not be code.
      this.#lexTail(this.#text.length - this.#settledChars);
      this.#settleTail();
      this.#fence = OpenFence.of(this.#tail.at(-1));
    }
    this.#publish();
  }

  /** Length of the open end to parse: all, or up to the last step, at a line end if possible. */
  #readable(): number {
    const chars = this.#text.length - this.#settledChars;
    if (chars <= this.#tailMax) return chars;
    const step = 2 ** Math.floor(Math.log2(chars)) / STEPS;
    const whole = Math.floor(chars / step) * step;
    const line = this.#text.lastIndexOf("\n", this.#settledChars + whole - 1) + 1 - this.#settledChars;
    return line > whole - step ? line : whole;
  }

  #hasRest(): boolean {
    return this.#settledChars + this.#read < this.#text.length;
  }

  #rest(): string {
    return this.#text.slice(this.#settledChars + this.#read);
  }

  #lexTail(chars: number): void {
    this.#read = chars;
    this.lexedChars += chars;
    const text = detached(this.#text.slice(this.#settledChars, this.#settledChars + chars));
    const { tokens, links } = lex(text, this.#settledLinks);
    this.#tail = tokens;
    this.#relink(links);
  }

  /** Parses settled parts again whose link definitions have changed; a definition may come anywhere. */
  #relink(links: Links): void {
    const changed = [...new Set([...Object.keys(links), ...Object.keys(this.#links)])].filter(
      (name) =>
        links[name]?.href !== this.#links[name]?.href || links[name]?.title !== this.#links[name]?.title,
    );
    this.#links = links;
    if (changed.length === 0 || this.#settled.length === 0) return;
    this.#settled = this.#settled.map((token) => {
      if (!mentions(token.raw, changed)) return token;
      this.lexedChars += token.raw.length;
      // The blank line ends the block: without it, the beginning could be that of an unclosed formula.
      const [again] = lex(BLOCKS_OF_LINES.has(token.type) ? `${token.raw}\n\n` : token.raw, links).tokens;
      return again === undefined ? token : { ...again, raw: token.raw };
    });
  }

  /** Settles tokens of the tail; returns whether there were any. */
  #settleTail(): boolean {
    // Tokens that do not add up to the text cannot be cut.
    if (lengthOf(this.#tail) !== this.#read) return false;
    const end = settledEnd(this.#tail);
    if (end === 0) return false;
    const settled = this.#tail.slice(0, end);
    const chars = lengthOf(settled);
    collectLinks(settled, this.#settledLinks);
    this.#settled.push(...settled);
    this.#settledChars += chars;
    this.#read -= chars;
    this.#tail = this.#tail.slice(end);
    return this.#hasRest();
  }

  #publish(): void {
    const rest = this.#rest();
    const read = [...this.#settled, ...this.#tail];
    this.#tokens = rest === "" ? read : [...read, { type: "text", raw: rest, text: rest }];
  }
}

/** Copies a part of a string: otherwise each token would keep the whole text in memory that it was parsed from. */
function detached(part: string): string {
  return ` ${part}`.slice(1);
}

function lengthOf(tokens: readonly Token[]): number {
  return tokens.reduce((chars, { raw }) => chars + raw.length, 0);
}

/** Number of tokens that later text cannot change. */
function settledEnd(tokens: readonly Token[]): number {
  let end = tokens.length;
  for (let open = 0; end > 0 && open < OPEN_TOKENS; ) {
    end -= 1;
    const token = tokens[end];
    if (token === undefined || token.type === "space") continue;
    if (open > 0 && isClosed(token, tokens[end + 1])) {
      end += 1;
      break;
    }
    open += 1;
  }
  // The label of a definition may span lines, and its title anything, until they are closed.
  const unclosed = tokens.findIndex(
    ({ type, raw }, at) =>
      (type === "paragraph" && /^ {0,3}\[(?:\\[\s\S]|[^[\]\\])*$/.test(raw)) ||
      (type === "def" && /^\s*["(]/.test(tokens[at + 1]?.raw ?? "")),
  );
  return unclosed === -1 ? end : Math.min(end, unclosed);
}

/** True if nothing below can join the token. */
function isClosed(token: Token, next: Token | undefined): boolean {
  switch (token.type) {
    case "code":
      return fenceOf(token.raw) !== undefined && isFenceClosed(token.raw);
    case "heading":
    case "hr":
      return true;
    case "paragraph":
    case "table":
      return next?.type === "space" || token.raw.endsWith("\n\n");
    default:
      return false;
  }
}

/** True if the text may link to one of these names; errs toward true. */
function mentions(raw: string, names: readonly string[]): boolean {
  if (!raw.includes("[")) return false;
  const text = raw.toLowerCase().replace(/\s+/g, " ");
  return names.some((name) => text.includes(name));
}

/** Collects definitions; the first one of a name counts. */
function collectLinks(tokens: readonly Token[], links: Links): void {
  for (const token of tokens) {
    if (token.type === "def") links[token.tag] ??= { href: token.href, title: token.title };
    if ("tokens" in token && token.tokens !== undefined) collectLinks(token.tokens, links);
    if (token.type === "list") collectLinks(token.items, links);
  }
}
