// What a language is: the shape of the English one. Framework-free.

import type { Language } from "../preferences.ts";
import { en } from "./en.ts";
import type { ViewWords } from "./views.ts";

/** Sentences with parts are functions of these parts, so that a part that is forgotten does not compile either. */
export type Words = typeof en;

/** A language as it is fetched. */
export interface Translation {
  words: Words;
  /** Of all views. English and Chinese have theirs in the file of each view, side by side. */
  views?: ViewWords;
}

/** A further language: everything in one file. */
export type WholeTranslation = Required<Translation>;

/** The other languages: a reader fetches the one they read. A further one is a `WholeTranslation` in a file beside `zh.ts`. */
const OTHERS: Readonly<Record<Exclude<Language, "en">, () => Promise<Translation>>> = {
  "zh-CN": async () => ({ words: (await import("./zh.ts")).zh }),
};

const here = new Map<Language, Translation>([["en", { words: en }]]);
const listeners = new Set<() => void>();

/** English, until the language is here. */
export function wordsOf(language: Language): Words {
  return here.get(language)?.words ?? en;
}

/** `undefined`: the view has them itself, or the language is not here. */
export function viewWordsOf<V extends keyof ViewWords>(
  language: Language,
  view: V,
): ViewWords[V] | undefined {
  return here.get(language)?.views?.[view];
}

/** Whoever subscribes is told when a language has come. */
export function onWords(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function takeWords(language: Language, translation: Translation): void {
  here.set(language, translation);
  for (const listener of listeners) listener();
}

/** A language that cannot be fetched now is fetched when it is chosen again. */
export async function fetchWords(language: Language): Promise<void> {
  if (language === "en" || here.has(language)) return;
  const translation = await OTHERS[language]().catch(() => undefined);
  if (translation !== undefined && !here.has(language)) takeWords(language, translation);
}
