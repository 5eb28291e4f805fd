// Announcements of a stream for screen readers: whole sentences, at most one every 1.5 s. Framework-free.

import type { AudioChunk, CallBlock, TurnListener } from "@throughline/client";
import type { Words } from "../../i18n/words.ts";
import type { Announce } from "../../preferences.ts";
import { approvalToolName } from "../../shared/call-card/tone.ts";
import { duration } from "../../shared/format.ts";

const EVERY_MS = 1_500;
/** End of a sentence, in Latin and Chinese script. */
const SENTENCE = /[^.!?。！？\n]*[.!?。！？\n]+/g;

export class Announcements implements TurnListener {
  readonly #words: () => Words;
  #say: ((text: string) => void) | undefined;
  #wanted: () => Announce = () => "sentences";
  #queue: string[] = [];
  #rest = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(words: () => Words) {
    this.#words = words;
  }

  listen(say: (text: string) => void, wanted: () => Announce): () => void {
    this.#say = say;
    this.#wanted = wanted;
    return () => {
      this.#say = undefined;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  onText(delta: string): void {
    if (this.#wanted() !== "sentences") return;
    this.#rest += delta;
    const whole = this.#rest.match(SENTENCE);
    if (whole === null) return;
    const text = whole.join("");
    this.#rest = this.#rest.slice(text.length);
    if (text.trim() !== "") this.#add(text.trim());
  }

  onToolCall(call: Readonly<CallBlock>): void {
    const words = this.#words();
    const tool = call.title || (call.tool_name ?? "");
    switch (call.status) {
      case "running":
        return this.#add(words.toolRuns(tool));
      case "success":
        return this.#add(words.toolDone(tool, duration(call.duration_ms ?? 0)));
      case "error":
      case "timed_out":
        return this.#add(words.toolFailed(tool));
      case "awaiting_approval":
        // Approvals are announced even if announcements are off.
        return this.#add(words.toolAsks(approvalToolName(call, words)), "always");
      default:
        return undefined;
    }
  }

  onAudio(_: AudioChunk): void {}

  end(): void {
    const rest = this.#rest.trim();
    this.#rest = "";
    if (this.#wanted() === "sentences" && rest !== "") this.#queue.push(rest);
    if (this.#wanted() !== "off") this.#add(this.#words().answerDone, "always");
  }

  #add(text: string, when: "sentences" | "always" = "sentences"): void {
    if (when === "sentences" && this.#wanted() !== "sentences") return;
    this.#queue.push(text);
    if (this.#timer === undefined) this.#next();
  }

  #next(): void {
    // Gathered sentences are announced together.
    const text = this.#queue.join(" ");
    this.#queue = [];
    this.#timer = undefined;
    if (text === "") return;
    this.#say?.(text);
    this.#timer = setTimeout(() => this.#next(), EVERY_MS);
  }
}
