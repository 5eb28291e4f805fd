// Tool-call mode and model that the user has chosen in this browser; otherwise the agent decides.
// Framework-free.

import { answering, Preference } from "../../preferences.ts";
import type { Mode } from "../model/entry.ts";

export const MODES: readonly Mode[] = ["native", "text", "auto"];

class ModeChoice extends Preference<Mode | ""> {
  /** The chosen mode; `undefined`: that of the agent. */
  chosen(): Mode | undefined {
    return this.get() || undefined;
  }
}

export const mode = new ModeChoice("throughline.mode", (stored) => MODES.find((one) => one === stored) ?? "");

/** Model of the next messages, as `upstream/model`; empty: that of the agent. */
export const model = new Preference<string>("throughline.model", (stored) => stored ?? "");

// Choosing an agent resets the model to the agent's own.
answering.subscribe(() => model.set(""));
