// Frames that this page draws late while an answer streams: the server is told of them. Framework-free.

import type { Throughline, TurnListener } from "@throughline/client";
import { frames } from "../../preferences.ts";

/** A frame that comes later behind the one before is late. */
const LATE_MS = 25;
/** So long behind the last news it is still watched. */
const REST_MS = 500;
/** A page that was hidden, or asleep, was not late. */
const ASLEEP_MS = 2_000;
/** Watched for so long, the server is told, even if the answer goes on. */
const REPORT_MS = 60_000;

/** Watches frames while something comes, and no others: a page that waits for a person draws none. */
export class Frames implements TurnListener {
  readonly #client: Throughline;
  #late = 0;
  #ms = 0;
  /** When the frame before was drawn; 0: none is watched. */
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

  /** Tells the server, if there is anything to tell. */
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
