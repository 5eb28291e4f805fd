// Expected outcome of a call. Framework-free.

/** Expected outcome of a call. */
export type Outlook = "runs" | "asks" | "denied" | "not_started" | "arriving";

/** Tone of each outlook. */
export const OUTLOOK_TONES = {
  runs: "good",
  asks: "waiting",
  denied: "bad",
  not_started: "bad",
  arriving: "running",
} as const satisfies Record<Outlook, string>;
