// Texts of errors.

import { lazyWords } from "../../i18n/use.ts";

const en = {
  kept: "What was written so far is kept.",
};
export type ErrorWords = typeof en;

const zh: ErrorWords = {
  kept: "已生成的内容会保留。",
};
export const useErrorWords = lazyWords("errors", en, zh);
