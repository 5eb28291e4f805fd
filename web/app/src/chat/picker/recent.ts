// Recently chosen models in this browser, the last one first. Framework-free.

import { Preference } from "../../preferences.ts";

const RECENT_MAX = 5;

const recent = new Preference<string>("throughline.models", (stored) => stored ?? "");

export function recentModels(): readonly string[] {
  return recent.get().split("\n").filter(Boolean);
}

export function rememberModel(id: string): void {
  recent.set([id, ...recentModels().filter((one) => one !== id)].slice(0, RECENT_MAX).join("\n"));
}
