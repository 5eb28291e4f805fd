// Texts of a temporary conversation.

import { lazyWords } from "../../i18n/use.ts";

const en = {
  title: "Temporary chat",
  how: "Not in lists or searches. It is deleted when you open another conversation, at the latest a day after its last message.",
  keep: "Keep it",
};
export type NoticeWords = typeof en;

const zh: NoticeWords = {
  title: "临时对话",
  how: "不会出现在列表和搜索中。打开其他对话时就会删除，最迟在最后一条消息的一天后删除。",
  keep: "保留",
};
export const useNoticeWords = lazyWords("temporary", en, zh);
