import { useSyncExternalStore } from "react";
import { language } from "../preferences.ts";
import type { ViewWords } from "./views.ts";
import { fetchWords, onWords, viewWordsOf, type Words, wordsOf } from "./words.ts";

language.subscribe(() => void fetchWords(language.get()));

/** Texts of the current language; components re-render when it changes. */
export function useWords(): Words {
  return useSyncExternalStore(subscribe, () => wordsOf(language.get()));
}

function subscribe(listener: () => void): () => void {
  const leave = [language.subscribe(listener), onWords(listener)];
  return () => {
    for (const stop of leave) stop();
  };
}

/** A hook for texts that are loaded with a view or a dialog: English and Chinese come together. */
export function lazyWords<V extends keyof ViewWords>(
  view: V,
  en: ViewWords[V],
  zh: ViewWords[V],
): () => ViewWords[V] {
  const now = (): ViewWords[V] => {
    const chosen = language.get();
    return viewWordsOf(chosen, view) ?? (chosen === "zh-CN" ? zh : en);
  };
  return function useLazyWords() {
    return useSyncExternalStore(subscribe, now);
  };
}
