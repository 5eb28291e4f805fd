// The words of the list of conversations, fetched with it.

import { lazyWords } from "../../i18n/use.ts";

const en = {
  search: "Search conversations",
  nothing: "No conversations yet",
  untitled: "Untitled",
  rename: "Rename",
  today: "Today",
  yesterday: "Yesterday",
  earlier: "Earlier",
  runningNow: "Running",
};

export type DrawerWords = typeof en;

const zh: DrawerWords = {
  search: "搜索对话",
  nothing: "还没有对话",
  untitled: "未命名",
  rename: "重命名",
  today: "今天",
  yesterday: "昨天",
  earlier: "更早",
  runningNow: "运行中",
};

export const useDrawerWords = lazyWords(en, zh);
