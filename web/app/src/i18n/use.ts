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
