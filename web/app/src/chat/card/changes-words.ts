// Texts of the differences between two calls, loaded with them.

import { lazyWords } from "../../i18n/use.ts";

const en = {
  since: (n: number) =>
    n === 0
      ? "Same arguments as the previous call"
      : `${n} ${n === 1 ? "change" : "changes"} since the previous call`,
  added: "Added",
  changed: "Changed",
  removed: "Removed",
};
export type ChangeWords = typeof en;

const zh: ChangeWords = {
  since: (n) => (n === 0 ? "参数与上次调用相同" : `与上次调用相比有 ${n} 处变化`),
  added: "新增",
  changed: "修改",
  removed: "删除",
};
export const useChangeWords = lazyWords("changes", en, zh);
