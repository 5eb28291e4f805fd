// The words of recorded streams alone: they are fetched with them. As in `i18n`, what one language lacks does not compile.

import { lazyWords } from "../i18n/use.ts";

const en = {
  recording: "Recording",
  api: "API",
  anyApi: "as it looks",
  choose: "Choose a file",
  how: "Or drop it here: the body of a reply, as `curl -sN … -o reply.sse` records it. It is read and not kept.",
  end: (end: string): string =>
    end === "complete" ? "complete" : end === "error" ? "ends in an error" : "breaks off before its end",
  usage: (read: number | null | undefined, written: number | null | undefined) =>
    `${read ?? "?"} → ${written ?? "?"} tok`,
  found: (calls: number, problems: number) =>
    `${calls} ${calls === 1 ? "call" : "calls"} · ${problems} ${problems === 1 ? "deviation" : "deviations"}`,
  line: (line: number) => `line ${line}`,
  calls: "Calls",
  drawn: "As the chat draws it",
  whole: "All of it",
  cut: "It is long: the end of it is not drawn.",
};

export type RecordedWords = typeof en;

const zh: RecordedWords = {
  recording: "录制",
  api: "API",
  anyApi: "自动识别",
  choose: "选择文件",
  how: "或拖到这里：用 `curl -sN … -o reply.sse` 录下的响应体。只读取，不保存。",
  end: (end) => (end === "complete" ? "完整" : end === "error" ? "以错误结束" : "没到结尾就断了"),
  usage: (read, written) => `${read ?? "?"} → ${written ?? "?"} 词元`,
  found: (calls, problems) => `${calls} 个调用 · ${problems} 处异常`,
  line: (line) => `第 ${line} 行`,
  calls: "调用",
  drawn: "在对话里的样子",
  whole: "显示全部",
  cut: "内容很长：末尾没有画出来。",
};

export const useRecordedWords = lazyWords(en, zh);
