import type { Outlook } from "./model/passages.ts";

/** Icon and tone of each outlook. */
export const OUTLOOK_TONES = {
  runs: "good",
  asks: "waiting",
  denied: "bad",
  not_started: "bad",
  arriving: "running",
} as const satisfies Record<Outlook, string>;
