// The words of this view, fetched with it.

import { grouped } from "../i18n/en.ts";
import { lazyWords } from "../i18n/use.ts";
import type { Length } from "./model.ts";

type Spans = Readonly<Record<Length, readonly [string, string]>>;

const en = {
  range: "Time range",
  spans: {
    hour: ["1 h", "Last hour"],
    day: ["24 h", "Last 24 hours"],
    week: ["7 d", "Last 7 days"],
    month: ["30 d", "Last 30 days"],
  } as Spans,
  firstToken: "Time to first token",
  speed: "Tokens per second",
  took: "Tool duration",
  errorRate: "Error rate",
  failedOf: (failed: number, all: number) => `${failed} of ${all} failed`,
  calls: "Tool calls",
  turns: "Turns",
  waiting: "Waiting for you",
  now: "Now",
  lateFrames: "Late frames",
  framesIn: (time: string) => `In ${time} of streaming in this browser`,
  p50: "p50",
  p95: "p95",
  chartOf: (what: string) => `${what} over time; the values are in the table below`,
  byTool: "By tool",
  tool: "Tool",
  noCalls: "No tool calls in this period",
  moreTools: (n: number) => `and ${n} more`,
  asTable: "Values over time",
  from: "From",
  cut: (n: number) => `Too much data to show in full. Based on the newest ${grouped(n)} entries.`,
};

export type MetricsWords = typeof en;

const zh: MetricsWords = {
  range: "时间范围",
  spans: {
    hour: ["1 小时", "最近 1 小时"],
    day: ["24 小时", "最近 24 小时"],
    week: ["7 天", "最近 7 天"],
    month: ["30 天", "最近 30 天"],
  },
  firstToken: "首字延迟",
  speed: "每秒 Token 数",
  took: "工具耗时",
  errorRate: "错误率",
  failedOf: (failed, all) => `${all} 个中 ${failed} 个失败`,
  calls: "工具调用",
  turns: "轮次",
  waiting: "等待确认",
  now: "现在",
  lateFrames: "延迟帧",
  framesIn: (time) => `本浏览器流式显示共 ${time}`,
  p50: "p50",
  p95: "p95",
  chartOf: (what) => `${what}随时间的变化，数值见下方表格`,
  byTool: "按工具",
  tool: "工具",
  noCalls: "这段时间没有工具调用",
  moreTools: (n) => `另有 ${n} 个`,
  asTable: "随时间变化的数值",
  from: "起始",
  cut: (n) => `数据过多，仅统计最新的 ${grouped(n)} 条。`,
};

export const useMetricsWords = lazyWords(en, zh);
