import { ApiError } from "@throughline/client";
import type { Words } from "../i18n/words.ts";

/** Error and remedy, one line each. */
export function failed(error: unknown, words: Words): string {
  if (error instanceof TypeError) return words.unreachable;
  if (!(error instanceof ApiError)) return String(error);
  const { message, code, remedy, retryAfter } = error;
  return [words.serverText(message, code), words.remedyText(remedy, code, retryAfter)]
    .filter(Boolean)
    .join("\n");
}
