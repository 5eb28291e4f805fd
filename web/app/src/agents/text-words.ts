// Texts of text rules, here and in the tester.

import { lazyWords } from "../i18n/use.ts";

const en = {
  textRules: "Text rules",
  textRulesHint:
    "Replace or hide what a regular expression matches, in this order: in what people are shown, or in what the model is told.",
  addTextRule: "Add a text rule",
  textRule: (n: number) => `Text rule ${n}`,
  isOn: "On",
  ruleName: "Name (optional)",
  pattern: "Pattern",
  patternHint: "Regular expression: (?i)secret-\\w+",
  action: "Matches are",
  replaced: "replaced with",
  hidden: "hidden",
  replacement: "Replacement",
  replacementHint: "$1 is the first group",
  target: "In what",
  targets: { shown: "people are shown", model: "the model is told" } as Readonly<Record<string, string>>,
  inTarget: (target: string) => `in what ${target}`,
  roles: "Texts",
  role: { assistant: "Answers", tool: "Tool results", user: "User messages" } as Readonly<
    Record<string, string>
  >,
  userShown: "A message is always shown as its author wrote it.",
  matches: (n: number) => `${n} ${n === 1 ? "match" : "matches"}`,
  exampleText: "Example text",
  exampleTextHint: "See what the rules make of this text. Nothing is saved.",
  exampleRole: "The text is",
  oneRole: { assistant: "an answer", tool: "a tool result", user: "a user message" } as Readonly<
    Record<string, string>
  >,
  shown: "People are shown",
  sentToModel: "The model is told",
  nothing: "(nothing)",
  noTextRules: "This agent has no text rules.",
  editAgent: "Edit the agent",
};

export type TextRuleWords = typeof en;

const zh: TextRuleWords = {
  textRules: "文本规则",
  textRulesHint: "按顺序替换或隐藏正则表达式匹配的内容：作用于显示给人的文本，或发给模型的文本。",
  addTextRule: "添加文本规则",
  textRule: (n) => `文本规则 ${n}`,
  isOn: "启用",
  ruleName: "名称（可选）",
  pattern: "匹配模式",
  patternHint: "正则表达式：(?i)secret-\\w+",
  action: "匹配的内容",
  replaced: "替换为",
  hidden: "隐藏",
  replacement: "替换文本",
  replacementHint: "$1 表示第一个分组",
  target: "作用于",
  targets: { shown: "显示给人的文本", model: "发给模型的文本" },
  inTarget: (target) => `作用于${target}`,
  roles: "文本类型",
  role: { assistant: "回答", tool: "工具结果", user: "用户消息" },
  userShown: "用户消息始终按原文显示。",
  matches: (n) => `${n} 处匹配`,
  exampleText: "示例文本",
  exampleTextHint: "查看规则会如何处理这段文本，不会保存。",
  exampleRole: "文本是",
  oneRole: { assistant: "回答", tool: "工具结果", user: "用户消息" },
  shown: "显示给人",
  sentToModel: "发给模型",
  nothing: "（无内容）",
  noTextRules: "此智能体没有文本规则。",
  editAgent: "编辑智能体",
};

export const useTextRuleWords = lazyWords("textRules", en, zh);
