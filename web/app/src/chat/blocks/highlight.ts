// Code in colours, as pieces of text: no markup is made. Fetched with the first code that is closed.

import type { Emitter } from "highlight.js";
import core from "highlight.js/lib/core";
import { languageOf, load } from "./languages.ts";

export type Colour = "key" | "text" | "number" | "name" | "remark";

export interface Piece {
  readonly text: string;
  readonly colour: Colour | undefined;
}

/** The text of all pieces is the code. */
export async function piecesOf(code: string, word: string): Promise<readonly Piece[]> {
  const language = languageOf(word);
  if (language === undefined) return [{ text: code, colour: undefined }];
  if (core.getLanguage(language) === undefined) core.registerLanguage(language, await load(language));
  core.configure({ __emitter: Pieces });
  const { _emitter: pieces } = core.highlight(code, { language, ignoreIllegals: true });
  return pieces instanceof Pieces ? pieces.pieces : [{ text: code, colour: undefined }];
}

/** Takes what the highlighter finds; the innermost scope that has a colour gives it. */
class Pieces implements Emitter {
  readonly pieces: Piece[] = [];
  readonly #colours: (Colour | undefined)[] = [];

  addText(text: string): void {
    if (text === "") return;
    const colour = this.#colours.at(-1);
    const last = this.pieces.at(-1);
    if (last?.colour === colour && last !== undefined) {
      this.pieces[this.pieces.length - 1] = { text: last.text + text, colour };
    } else {
      this.pieces.push({ text, colour });
    }
  }

  startScope(scope: string): void {
    this.#colours.push(colourOf(scope) ?? this.#colours.at(-1));
  }

  openNode(scope: string): void {
    this.startScope(scope);
  }

  endScope(): void {
    this.#colours.pop();
  }

  closeNode(): void {
    this.endScope();
  }

  __addSublanguage(inner: Emitter): void {
    if (!(inner instanceof Pieces)) return;
    for (const { text, colour } of inner.pieces) {
      this.#colours.push(colour);
      this.addText(text);
      this.#colours.pop();
    }
  }

  finalize(): void {
    this.#colours.length = 0;
  }

  /** Nobody reads it. */
  toHTML(): string {
    return "";
  }
}

function colourOf(scope: string): Colour | undefined {
  switch (scope.split(".", 1)[0]) {
    case "keyword":
    case "meta":
    case "selector-tag":
    case "tag":
    case "operator":
      return "key";
    case "string":
    case "regexp":
    case "addition":
    case "char":
      return "text";
    case "number":
    case "literal":
    case "symbol":
    case "deletion":
      return "number";
    case "title":
    case "type":
    case "built_in":
    case "attr":
    case "attribute":
    case "name":
    case "selector-class":
    case "selector-id":
    case "property":
      return "name";
    case "comment":
    case "quote":
    case "doctag":
      return "remark";
    default:
      return undefined;
  }
}
