// Languages that are coloured, each fetched when it is first needed.

import type { LanguageFn } from "highlight.js";

type Load = () => Promise<{ default: LanguageFn }>;

const LANGUAGES = {
  bash: () => import("highlight.js/lib/languages/bash"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  css: () => import("./css-language.ts"),
  go: () => import("highlight.js/lib/languages/go"),
  java: () => import("highlight.js/lib/languages/java"),
  json: () => import("highlight.js/lib/languages/json"),
  python: () => import("highlight.js/lib/languages/python"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  // It has all of JavaScript in it; that language by itself would be fetched for nothing.
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
} as const satisfies Record<string, Load>;

type Language = keyof typeof LANGUAGES;

/** What people call them behind a fence. */
const ALIASES = new Map<string, Language>([
  ["c", "cpp"],
  ["c++", "cpp"],
  ["golang", "go"],
  ["h", "cpp"],
  ["html", "xml"],
  ["javascript", "typescript"],
  ["js", "typescript"],
  ["jsonc", "json"],
  ["jsx", "typescript"],
  ["py", "python"],
  ["rs", "rust"],
  ["sh", "bash"],
  ["shell", "bash"],
  ["svg", "xml"],
  ["ts", "typescript"],
  ["tsx", "typescript"],
  ["zsh", "bash"],
]);

function isLanguage(name: string): name is Language {
  return Object.hasOwn(LANGUAGES, name);
}

export function languageOf(word: string): Language | undefined {
  const name = word.toLowerCase();
  return isLanguage(name) ? name : ALIASES.get(name);
}

export async function load(language: Language): Promise<LanguageFn> {
  return (await LANGUAGES[language]()).default;
}
