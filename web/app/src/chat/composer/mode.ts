// How tool calls travel, as this browser's user has chosen; the agent says so otherwise. Framework-free. R: T3

import { Preference } from "../../preferences.ts";
import type { Mode } from "../model/entry.ts";

export const MODES: readonly Mode[] = ["native", "text", "auto"];

class ModeChoice extends Preference<Mode | ""> {
  /** `undefined`: as the agent says. */
  chosen(): Mode | undefined {
    return this.get() || undefined;
  }
}

export const mode = new ModeChoice("throughline.mode", (stored) => MODES.find((one) => one === stored) ?? "");
