// Texts of a thinking block.

import { lazyWords } from "../../i18n/use.ts";

const en = {
  thinking: "Thinking",
  thought: (time: string | undefined) => (time === undefined ? "Thought process" : `Thought for ${time}`),
};
export type ThinkingWords = typeof en;

const zh: ThinkingWords = {
  thinking: "正在思考",
  thought: (time) => (time === undefined ? "思考过程" : `思考了 ${time}`),
};
export const useThinkingWords = lazyWords("thinking", en, zh);
