// The words of parts that several views have and the chat has not: they are fetched with them.

import { lazyWords } from "../i18n/use.ts";

const en = {
  remedy: "What helps",
  unreachable: "The server cannot be reached.",
};

export type PartWords = typeof en;

const zh: PartWords = {
  remedy: "怎么办",
  unreachable: "连不上服务器。",
};

export const usePartWords = lazyWords(en, zh);
