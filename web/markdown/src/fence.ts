// Fenced code: whether it is closed, and appending to an open one without parsing it again.

import type { Token, Tokens } from "marked";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** The opening fence of a code block; `undefined`: it is indented. */
export function fenceOf(raw: string): string | undefined {
  return FENCE.exec(raw)?.[1];
}

/** True if the closing fence is there: an open block may still grow. */
export function isFenceClosed(raw: string): boolean {
  const fence = fenceOf(raw);
  if (fence === undefined) return true;
  const body = raw.trimEnd();
  const last = body.lastIndexOf("\n");
  return last !== -1 && closes(body.slice(last + 1), fence);
}

function closes(line: string, fence: string): boolean {
  const mark = fence[0];
  return new RegExp(`^ {0,3}${mark}{${fence.length},} *$`).test(line);
}

/** An open fence at the end of a text. */
export class OpenFence {
  readonly #fence: string;
  #token: Tokens.Code;
  /** Start of the last line, which may become the closing fence. */
  #lastLine: number;

  private constructor(token: Tokens.Code, fence: string) {
    this.#token = token;
    this.#fence = fence;
    this.#lastLine = token.raw.lastIndexOf("\n") + 1;
  }

  /** The open fence of a token; `undefined`: none, closed, indented, or with an incomplete language. */
  static of(token: Token | undefined): OpenFence | undefined {
    if (token?.type !== "code" || !isCode(token) || !/^[`~]/.test(token.raw)) return undefined;
    const fence = fenceOf(token.raw);
    if (fence === undefined || !token.raw.includes("\n") || isFenceClosed(token.raw)) return undefined;
    return new OpenFence(token, fence);
  }

  /** The same block with more lines; `undefined`: a line may close it. */
  grown(added: string): Tokens.Code | undefined {
    const raw = this.#token.raw + added;
    for (let at = this.#lastLine, from = this.#token.raw.length; ; ) {
      const end = raw.indexOf("\n", from);
      if (closes(raw.slice(at, end === -1 ? undefined : end), this.#fence)) return undefined;
      if (end === -1) break;
      at = end + 1;
      from = at;
      this.#lastLine = at;
    }
    const body = raw.slice(raw.indexOf("\n") + 1);
    // Like the lexer: a single line end belongs to the closing fence.
    this.#token = {
      ...this.#token,
      raw,
      text: raw.endsWith("\n") && !raw.endsWith("\n\n") ? body.slice(0, -1) : body,
    };
    return this.#token;
  }
}

function isCode(token: Token): token is Tokens.Code {
  return token.type === "code" && typeof token.raw === "string";
}
