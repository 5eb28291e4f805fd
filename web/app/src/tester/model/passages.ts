// Positions of calls in a text: the server counts bytes, a page counts UTF-16 units. Framework-free.

import type { ParsedReply, ParsedRequest, ParsedWarning } from "@throughline/client";
import type { Outlook } from "../../shared/outlook.ts";

export type Passage =
  | { kind: "text"; text: string }
  /** `number`: from 1, in the order of the text. */
  | { kind: "call"; text: string; number: number; outlook: Outlook }
  /** The text that the warning is about begins here. */
  | { kind: "warning"; text: string; warning: ParsedWarning };

/** Converts offsets in UTF-8 bytes to offsets in the text. */
export function offsetsIn(text: string): (byte: number) => number {
  const units: number[] = [];
  let unit = 0;
  for (const character of text) {
    for (let byte = widthOf(character.codePointAt(0) ?? 0); byte > 0; byte -= 1) units.push(unit);
    unit += character.length;
  }
  return (byte) => units[Math.max(byte, 0)] ?? text.length;
}

function widthOf(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}

/** Warning of an incomplete marker at the end, which is normal until the text is complete. */
const TORN = "torn_marker";

/** Warnings that apply; of an incomplete text, without that of its end. */
export function warningsOf(parsed: ParsedReply, isWhole: boolean): readonly ParsedWarning[] {
  return isWhole ? parsed.warnings : parsed.warnings.filter(({ kind }) => kind !== TORN);
}

/** Outlook of a call. It is arriving while its end is missing and nothing follows but a part of a marker. */
export function outlookOf(
  request: ParsedRequest,
  parsed: ParsedReply,
  text: string,
  isWhole: boolean,
): Outlook {
  const outlook = OUTLOOKS.find((outlook) => outlook === request.outlook) ?? "not_started";
  if (isWhole || request.arguments !== null) return outlook;
  const offset = offsetsIn(text);
  const torn = parsed.warnings.find(({ kind, at }) => kind === TORN && at >= request.end);
  const rest = text.slice(offset(request.end), torn && offset(torn.at));
  return rest.trim() === "" ? "arriving" : outlook;
}

const OUTLOOKS: readonly Outlook[] = ["runs", "asks", "denied", "not_started"];

/** The text in order, cut at calls and warnings. Joined it is the same text. */
export function passagesOf(text: string, parsed: ParsedReply, isWhole: boolean): Passage[] {
  const offset = offsetsIn(text);
  const passages: Passage[] = [];
  let here = 0;
  const upTo = (end: number): void => {
    if (end > here) passages.push({ kind: "text", text: text.slice(here, end) });
    here = Math.max(here, end);
  };
  const marks = [
    ...parsed.requests.map((request, at) => ({ start: request.start, request, number: at + 1 })),
    ...warningsOf(parsed, isWhole).map((warning) => ({ start: warning.at, warning })),
  ].sort((one, other) => one.start - other.start);
  for (const mark of marks) {
    const start = offset(mark.start);
    if (start < here) continue;
    upTo(start);
    if ("request" in mark) {
      here = Math.max(offset(mark.request.end), start);
      const outlook = outlookOf(mark.request, parsed, text, isWhole);
      passages.push({ kind: "call", text: text.slice(start, here), number: mark.number, outlook });
    } else {
      here = endOfLine(text, start);
      passages.push({ kind: "warning", text: text.slice(start, here), warning: mark.warning });
    }
  }
  upTo(text.length);
  return passages.filter((passage) => passage.text !== "");
}

/** A warning has only a start: mostly that of a marker, which ends with its line. */
function endOfLine(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end === -1 ? text.length : Math.max(end, Math.min(start + 1, text.length));
}

/** Length of the text after one more piece; never within a surrogate pair. */
export function afterPiece(text: string, at: number, characters: number): number {
  let end = at;
  for (let n = 0; n < characters && end < text.length; n += 1) {
    end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
  }
  return end;
}
