// The words of parts that several views have and the chat has not: they are fetched with them.

import { useSyncExternalStore } from "react";
import { language } from "../preferences.ts";

const en = {
  remedy: "What helps",
};

export type PartWords = typeof en;

const zh: PartWords = {
  remedy: "怎么办",
};

export function usePartWords(): PartWords {
  return useSyncExternalStore(language.subscribe, language.get) === "zh-CN" ? zh : en;
}
