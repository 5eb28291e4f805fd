// A language: the shape of the English texts. Framework-free.

import type { Language } from "../preferences.ts";
import { Variable } from "../store.ts";
import { en } from "./en.ts";
import type { ViewWords } from "./views.ts";

/** All texts. Sentences with parts are functions of these parts, so that a forgotten part does not compile either. */
export type Words = typeof en;

/** A language as it is loaded. */
export interface Translation {
  words: Words;
  /** Texts of all views. English and Chinese have theirs in the file of each view. */
  views?: ViewWords;
}

/** An additional language: everything in one file. */
export type WholeTranslation = Required<Translation>;

/** Languages other than English, loaded when they are chosen. A new one is a `WholeTranslation` in a file next to `zh.ts`. */
const OTHERS: Readonly<Record<Exclude<Language, "en">, () => Promise<Translation>>> = {
  "zh-CN": async () => ({ words: (await import("./zh.ts")).zh }),
};

type Translations = ReadonlyMap<Language, Translation>;
const loaded = new Variable<Translations>(new Map([["en", { words: en }]]));

/** Texts of a language; English until it is loaded. */
export function wordsOf(language: Language): Words {
  return loaded.get().get(language)?.words ?? en;
}

/** Texts of a view; `undefined`: the view has its own, or the language is not loaded. */
export function viewWordsOf<V extends keyof ViewWords>(
  language: Language,
  view: V,
): ViewWords[V] | undefined {
  return loaded.get().get(language)?.views?.[view];
}

/** Subscribes to loaded languages. */
export const onWords = loaded.subscribe;

export function takeWords(language: Language, translation: Translation): void {
  loaded.set(new Map([...loaded.get(), [language, translation]]));
}

/** Loads a language. If that fails, it is tried again when the language is chosen again. */
export async function fetchWords(language: Language): Promise<void> {
  if (language === "en" || loaded.get().has(language)) return;
  const translation = await OTHERS[language]().catch(() => undefined);
  if (translation !== undefined && !loaded.get().has(language)) takeWords(language, translation);
}
