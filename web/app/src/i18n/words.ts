// A language: the shape of the English texts. Framework-free.

import type { Language } from "../preferences.ts";
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

const here = new Map<Language, Translation>([["en", { words: en }]]);
const listeners = new Set<() => void>();

/** Texts of a language; English until it is loaded. */
export function wordsOf(language: Language): Words {
  return here.get(language)?.words ?? en;
}

/** Texts of a view; `undefined`: the view has its own, or the language is not loaded. */
export function viewWordsOf<V extends keyof ViewWords>(
  language: Language,
  view: V,
): ViewWords[V] | undefined {
  return here.get(language)?.views?.[view];
}

/** Subscribes to loaded languages. */
export function onWords(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function takeWords(language: Language, translation: Translation): void {
  here.set(language, translation);
  for (const listener of listeners) listener();
}

/** Loads a language. If that fails, it is tried again when the language is chosen again. */
export async function fetchWords(language: Language): Promise<void> {
  if (language === "en" || here.has(language)) return;
  const translation = await OTHERS[language]().catch(() => undefined);
  if (translation !== undefined && !here.has(language)) takeWords(language, translation);
}
