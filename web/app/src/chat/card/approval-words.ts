// Texts of an approval, loaded with the first one.

import { lazyWords } from "../../i18n/use.ts";

export type Lasting = "turn" | "conversation" | "always";

const en = {
  forHowLong: "More ways to approve",
  lasting: {
    turn: "This tool in this turn",
    conversation: "This tool in this conversation",
    always: "Always this tool",
  } satisfies Record<Lasting, string>,
  onlyThese: "Only these arguments",
  always: (tool: string, effect: "write" | "external", onlyThese: boolean): string => {
    const what = effect === "write" ? "changes data" : "acts on other systems, which can't be undone";
    const which = onlyThese ? " with exactly these arguments" : ", whatever its arguments";
    return `“Always” means: ${tool} ${what} and will never ask again${which}. You can take it back in Settings.`;
  },
  moreDenials: "More ways to deny",
  denyAndStop: "Deny and stop",
  denyAndStopHow:
    "Denies this call and ends the turn: its other calls are canceled, and the model isn't asked again.",
  lastingDenial: {
    turn: "Deny in this turn",
    conversation: "Deny in this conversation",
    always: "Always deny",
  } satisfies Record<Lasting, string>,
  alwaysDenied: (tool: string, onlyThese: boolean): string => {
    const which = onlyThese ? " with exactly these arguments" : ", whatever its arguments,";
    return `“Always” means: ${tool}${which} is denied from now on without asking you. You can take it back in Settings.`;
  },
  raw: "Raw",
  notYet: "Fill in the marked fields first",
};

export type ApprovalWords = typeof en;

const zh: ApprovalWords = {
  forHowLong: "更多批准方式",
  lasting: { turn: "本轮内允许此工具", conversation: "本对话内允许此工具", always: "始终允许此工具" },
  onlyThese: "仅限这些参数",
  always: (tool, effect, onlyThese) => {
    const what = effect === "write" ? "会更改数据" : "会影响外部系统且无法撤销";
    const which = onlyThese ? "只要参数与此完全相同，" : "无论参数是什么，";
    return `“始终”意味着：${tool}${what}，${which}以后都不再询问。可以在设置中撤回。`;
  },
  moreDenials: "更多拒绝方式",
  denyAndStop: "拒绝并停止",
  denyAndStopHow: "拒绝这次调用并结束本轮：其他调用会取消，不再询问模型。",
  lastingDenial: { turn: "本轮内拒绝", conversation: "本对话内拒绝", always: "始终拒绝" },
  alwaysDenied: (tool, onlyThese) =>
    `“始终”意味着：${tool}${onlyThese ? "只要参数与此完全相同，" : "无论参数是什么，"}以后都直接拒绝，不再询问。可以在设置中撤回。`,
  raw: "原文",
  notYet: "请先填好标出的字段",
};

export const useApprovalWords = lazyWords("approvals", en, zh);
