import { useSyncExternalStore } from "react";
import { language } from "../preferences.ts";
import { fetchWords, onWords, type Words, wordsOf } from "./words.ts";

language.subscribe(() => void fetchWords(language.get()));

/** The words of the language that is chosen; whoever uses them is drawn anew when another one is. */
export function useWords(): Words {
  return useSyncExternalStore(subscribe, () => wordsOf(language.get()));
}

function subscribe(listener: () => void): () => void {
  const leave = [language.subscribe(listener), onWords(listener)];
  return () => {
    for (const stop of leave) stop();
  };
}

/** A hook for words that are fetched with a view or a dialog of their own: there, both languages come together. */
export function lazyWords<W>(en: W, zh: W): () => W {
  return function useLazyWords() {
    return useSyncExternalStore(language.subscribe, language.get) === "zh-CN" ? zh : en;
  };
}
