// The words of the list of conversations alone: they are fetched with it. As in `i18n`, what one language lacks does not compile.

import { lazyWords } from "../../i18n/use.ts";

const en = {
  search: "Search in titles, questions and answers",
  nothing: "Nothing yet.",
  untitled: "Untitled",
  rename: "Rename",
  today: "Today",
  yesterday: "Yesterday",
  earlier: "Earlier",
  runningNow: "running",
};

export type DrawerWords = typeof en;

const zh: DrawerWords = {
  search: "搜索标题、提问和回答",
  nothing: "还没有对话。",
  untitled: "未命名",
  rename: "重命名",
  today: "今天",
  yesterday: "昨天",
  earlier: "更早",
  runningNow: "进行中",
};

export const useDrawerWords = lazyWords(en, zh);
