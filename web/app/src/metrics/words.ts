// The words of this view alone: they are fetched with it. As in `i18n`, what one language lacks does not compile.

import { grouped } from "../i18n/en.ts";
import { lazyWords } from "../i18n/use.ts";
import type { Length } from "./model.ts";

type Spans = Readonly<Record<Length, readonly [string, string]>>;

const en = {
  range: "Time",
  spans: {
    hour: ["1 h", "Last hour"],
    day: ["24 h", "Last 24 hours"],
    week: ["7 d", "Last 7 days"],
    month: ["30 d", "Last 30 days"],
  } as Spans,
  firstToken: "First token",
  speed: "Tokens per second",
  took: "Tool time",
  errorRate: "Error rate",
  failedOf: (failed: number, all: number) => `${failed} of ${all} failed`,
  calls: "Tool calls",
  turns: "Answers",
  waiting: "Waiting for you",
  now: "now",
  lateFrames: "Late frames",
  framesIn: (time: string) => `in ${time} of answers in this browser`,
  p50: "p50",
  p95: "p95",
  chartOf: (what: string) => `${what} over time; its figures are in the table below`,
  byTool: "By tool",
  tool: "Tool",
  noCalls: "No tool was called in this time.",
  moreTools: (n: number) => `and ${n} more`,
  asTable: "Over time, as a table",
  from: "From",
  cut: (n: number) => `There is more than is looked at: these are the figures of the newest ${grouped(n)}.`,
};

export type MetricsWords = typeof en;

const zh: MetricsWords = {
  range: "时间",
  spans: {
    hour: ["1 小时", "最近一小时"],
    day: ["24 小时", "最近 24 小时"],
    week: ["7 天", "最近 7 天"],
    month: ["30 天", "最近 30 天"],
  },
  firstToken: "首字时间",
  speed: "每秒词元数",
  took: "工具用时",
  errorRate: "错误率",
  failedOf: (failed, all) => `${all} 个中 ${failed} 个失败`,
  calls: "工具调用",
  turns: "回答",
  waiting: "等你确认",
  now: "现在",
  lateFrames: "迟到的帧",
  framesIn: (time) => `本浏览器的回答共 ${time}`,
  p50: "p50",
  p95: "p95",
  chartOf: (what) => `${what}随时间的变化，数字见下方表格`,
  byTool: "按工具",
  tool: "工具",
  noCalls: "这段时间没有调用过工具。",
  moreTools: (n) => `另有 ${n} 个`,
  asTable: "随时间变化（表格）",
  from: "起始",
  cut: (n) => `数据超出了统计上限：这些数字只算最新的 ${grouped(n)} 条。`,
};

export const useMetricsWords = lazyWords(en, zh);
