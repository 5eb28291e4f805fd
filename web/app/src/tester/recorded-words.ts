// Texts of recorded streams, loaded with them.

import { lazyWords } from "../i18n/use.ts";

const en = {
  recording: "Recording",
  api: "API format",
  anyApi: "Auto-detect",
  choose: "Choose a file",
  how: "Or drop it here: a response body, as recorded by `curl -sN … -o reply.sse`. It is read but not stored.",
  end: (end: string): string =>
    end === "complete" ? "Complete" : end === "error" ? "Ends with an error" : "Cut off before the end",
  usage: (read: number | null | undefined, written: number | null | undefined) =>
    `${read ?? "?"} → ${written ?? "?"} tokens`,
  found: (calls: number, problems: number) =>
    `${calls} ${calls === 1 ? "call" : "calls"} · ${problems} ${problems === 1 ? "problem" : "problems"}`,
  line: (line: number) => `Line ${line}`,
  calls: "Calls",
  drawn: "As shown in the chat",
  whole: "Show all",
  cut: "The recording is too long to show in full; its end is left out.",
};

export type RecordedWords = typeof en;

const zh: RecordedWords = {
  recording: "录制",
  api: "接口格式",
  anyApi: "自动识别",
  choose: "选择文件",
  how: "或拖到这里：用 `curl -sN … -o reply.sse` 录下的响应体。只读取，不保存。",
  end: (end) => (end === "complete" ? "完整" : end === "error" ? "以错误结束" : "中途断开"),
  usage: (read, written) => `${read ?? "?"} → ${written ?? "?"} Token`,
  found: (calls, problems) => `${calls} 个调用 · ${problems} 处异常`,
  line: (line) => `第 ${line} 行`,
  calls: "调用",
  drawn: "在对话中的样子",
  whole: "显示全部",
  cut: "录制内容太长，末尾未显示。",
};

export const useRecordedWords = lazyWords("recorded", en, zh);
