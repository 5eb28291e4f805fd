// Late frames of this page while an answer streams, reported to the server. Framework-free.

import type { Throughline, TurnListener } from "@throughline/client";
import { frames } from "../../preferences.ts";

/** A frame this long after the previous one is late. */
const LATE_MS = 25;
/** Time after the last event for which frames are still watched. */
const REST_MS = 500;
/** Longer gaps mean a hidden or suspended page. */
const ASLEEP_MS = 2_000;
/** Interval of reports during a long answer. */
const REPORT_MS = 60_000;

/** Watches frames while events come, and no others: an idle page requests no frames. */
export class Frames implements TurnListener {
  readonly #client: Throughline;
  #late = 0;
  #ms = 0;
  /** Time of the previous frame; 0: not watching. */
  #last = 0;
  #newsAt = 0;

  constructor(client: Throughline) {
    this.#client = client;
  }

  readonly onText = (): void => {
    this.#newsAt = performance.now();
    if (this.#last > 0) return;
    this.#last = this.#newsAt;
    requestAnimationFrame(this.#frame);
  };
  readonly onToolCall = this.onText;

  /** Reports to the server, if there is anything to report. */
  report(): void {
    const [jank_frames, window_ms] = [this.#late, Math.round(this.#ms)];
    if (window_ms === 0) return;
    this.#late = this.#ms = 0;
    const [late = 0, ms = 0] = frames.get().split("/").map(Number);
    frames.set(`${late + jank_frames}/${ms + window_ms}`);
    const body = { jank_frames, window_ms };
    void this.#client.call("POST /v1/telemetry/frames", { body }).catch(() => {});
  }

  readonly #frame = (now: number): void => {
    const took = now - this.#last;
    if (took > 0 && took < ASLEEP_MS && !document.hidden) {
      this.#ms += took;
      if (took > LATE_MS) this.#late += 1;
    }
    if (this.#ms > REPORT_MS) this.report();
    const goesOn = now - this.#newsAt < REST_MS;
    this.#last = goesOn ? now : 0;
    if (goesOn) requestAnimationFrame(this.#frame);
  };
}
