// Markdown of a text that grows: what stands far enough above its end is read once. Whatever pieces the text comes in, the tokens
// are those of the whole text read at once.

import type { Token } from "marked";
import { fenceOf, isFenceClosed, OpenFence } from "./fence.ts";
import { type Links, lex } from "./lexer.ts";
import { OpenEnd } from "./open-end.ts";

/** What may still change with more text: the last token, and what it may join. */
const OPEN_TOKENS = 2;
/** Up to here the open end is read with every piece; a single longer block, in steps of a part of its length. */
const TAIL_CHARS_MAX = 4_096;
const STEPS = 16;
/** Blocks that a blank line ends, so that one behind them changes nothing. */
const BLOCKS_OF_LINES: ReadonlySet<string> = new Set(["paragraph", "heading", "table"]);

export class GrowingMarkdown {
  /** Characters that went through the lexer: what this costs. */
  lexedChars = 0;
  readonly #tailMax: number;
  /** The text that the tokens were made of, as it came and with its line ends as `\n`. */
  #given = "";
  #text = "";
  /** Parts that are settled, where they end, and the addresses in them. */
  #settled: Token[] = [];
  #settledChars = 0;
  #settledLinks: Links = {};
  /** Addresses in all of the text. */
  #links: Links = {};
  #tail: Token[] = [];
  /** How much of the text after the settled part the tail was made of. */
  #read = 0;
  #fence: OpenFence | undefined;
  #tokens: readonly Token[] = [];

  constructor(tailMax = TAIL_CHARS_MAX) {
    this.#tailMax = tailMax;
  }

  /** The tokens of the whole text. Those that were settled before are the same objects. */
  read(text: string): readonly Token[] {
    if (text === this.#given) return this.#tokens;
    // A reply was taken back in part.
    // A slice is compared as a block of memory, `startsWith` character by character: ten times as long.
    if (text.slice(0, this.#given.length) !== this.#given) this.#forget();
    const isCut = this.#given.endsWith("\r");
    const piece = text.slice(this.#given.length);
    const added = (isCut && piece.startsWith("\n") ? piece.slice(1) : piece).replace(/\r\n?/g, "\n");
    // One string while both are the same: a second one would be copied with every piece, too.
    this.#text = added === piece && this.#text === this.#given ? text : this.#text + added;
    this.#given = text;
    if (added !== "" && !this.#growFence(added)) this.#readTail();
    return this.#tokens;
  }

  /** The tokens of a text that is complete: nothing of it is left unread. */
  complete(text: string): readonly Token[] {
    this.read(text);
    if (this.#hasRest()) {
      this.#lexTail(this.#text.length - this.#settledChars);
      this.#settleTail();
      this.#publish();
    }
    return this.#tokens;
  }

  /** The end of the text that was read, for what may be shown without being read. */
  openEnd(): OpenEnd | undefined {
    // Of a line end that is cut in two, the second half is to come.
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
      // The fence ends in what is left: shown as anything else it would be no code.
      this.#lexTail(this.#text.length - this.#settledChars);
      this.#settleTail();
      this.#fence = OpenFence.of(this.#tail.at(-1));
    }
    this.#publish();
  }

  /** How much of the open end is read: all, or as far as the last of few steps, at the end of a line if there is one. */
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

  /** Reads settled parts again whose links have got another address; an address may stand anywhere. */
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
      // The blank line ends the block: without it, the beginning could be that of a formula without an end.
      const [again] = lex(BLOCKS_OF_LINES.has(token.type) ? `${token.raw}\n\n` : token.raw, links).tokens;
      return again === undefined ? token : { ...again, raw: token.raw };
    });
  }

  /** Whether anything was settled. */
  #settleTail(): boolean {
    // Tokens that do not add up to the text say nothing about where it may be cut.
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

/** A part of a string keeps all of it in memory, and tokens are parts: each would keep the whole text as it was when it was read. */
function detached(part: string): string {
  return ` ${part}`.slice(1);
}

function lengthOf(tokens: readonly Token[]): number {
  return tokens.reduce((chars, { raw }) => chars + raw.length, 0);
}

/** How many tokens no further text changes. */
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
  // The name of an address may go over lines, and its title over anything, until they are closed.
  const unclosed = tokens.findIndex(
    ({ type, raw }, at) =>
      (type === "paragraph" && /^ {0,3}\[(?:\\[\s\S]|[^[\]\\])*$/.test(raw)) ||
      (type === "def" && /^\s*["(]/.test(tokens[at + 1]?.raw ?? "")),
  );
  return unclosed === -1 ? end : Math.min(end, unclosed);
}

/** Whether nothing joins it, whatever stands below it. */
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

/** Whether a text may link to one of these names; rather too often. */
function mentions(raw: string, names: readonly string[]): boolean {
  if (!raw.includes("[")) return false;
  const text = raw.toLowerCase().replace(/\s+/g, " ");
  return names.some((name) => text.includes(name));
}

/** Of two addresses with one name the first counts. */
function collectLinks(tokens: readonly Token[], links: Links): void {
  for (const token of tokens) {
    if (token.type === "def") links[token.tag] ??= { href: token.href, title: token.title };
    if ("tokens" in token && token.tokens !== undefined) collectLinks(token.tokens, links);
    if (token.type === "list") collectLinks(token.items, links);
  }
}
