import type { Fate } from "./model/passages.ts";

/** Icon and tone of each outlook. */
export const LOOKS = {
  runs: "good",
  asks: "waiting",
  denied: "bad",
  not_started: "bad",
  arriving: "running",
} as const satisfies Record<Fate, string>;
