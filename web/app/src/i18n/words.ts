// What a language is: the shape of the English one. Framework-free.

import type { Language } from "../preferences.ts";
import { en } from "./en.ts";

/** Sentences with parts are functions of these parts, so that a part that is forgotten does not compile either. */
export type Words = typeof en;

/** The other languages: a reader fetches the one they read. */
const OTHERS: Readonly<Record<Exclude<Language, "en">, () => Promise<Words>>> = {
  "zh-CN": async () => (await import("./zh.ts")).zh,
};

const here = new Map<Language, Words>([["en", en]]);
const listeners = new Set<() => void>();

/** English, until the language is here. */
export function wordsOf(language: Language): Words {
  return here.get(language) ?? en;
}

/** Whoever subscribes is told when a language has come. */
export function onWords(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** A language that cannot be fetched now is fetched when it is chosen again. */
export async function fetchWords(language: Language): Promise<void> {
  if (language === "en" || here.has(language)) return;
  const words = await OTHERS[language]().catch(() => undefined);
  if (words === undefined || here.has(language)) return;
  here.set(language, words);
  for (const listener of listeners) listener();
}
