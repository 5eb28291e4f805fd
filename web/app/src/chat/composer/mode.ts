// How tool calls travel and which model answers, as this browser's user has chosen; the agent says so otherwise.
// Framework-free.

import { answering, Preference } from "../../preferences.ts";
import type { Mode } from "../model/entry.ts";

export const MODES: readonly Mode[] = ["native", "text", "auto"];

class ModeChoice extends Preference<Mode | ""> {
  /** `undefined`: as the agent says. */
  chosen(): Mode | undefined {
    return this.get() || undefined;
  }
}

export const mode = new ModeChoice("throughline.mode", (stored) => MODES.find((one) => one === stored) ?? "");

/** The model of the messages to come, as `upstream/model`; empty: that of the agent. */
export const model = new Preference<string>("throughline.model", (stored) => stored ?? "");

// Whoever chooses an agent wants its own model.
answering.subscribe(() => model.set(""));
