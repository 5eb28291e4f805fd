import type { Fate } from "./model/passages.ts";

/** How what becomes of a call is shown. */
export const LOOKS = {
  runs: "good",
  asks: "waiting",
  denied: "bad",
  not_started: "bad",
  arriving: "running",
} as const satisfies Record<Fate, string>;
