// Texts of the model picker, loaded with it.

import { grouped } from "../../i18n/en.ts";
import { lazyWords } from "../../i18n/use.ts";
import type { Mode } from "../model/entry.ts";

const en = {
  title: "Model and tools",
  search: "Search models and agents",
  none: "Nothing found",
  agents: "Agents",
  models: "Models",
  ofAgent: "The agent's own model",
  isDefault: "Default",
  lastUsed: "Last used",
  context: (k: string) => `${k} context`,
  vision: "Images",
  audio: "Audio",
  tools: "Tools",
  noTools: "No native tools",
  again: (model: string) => `Regenerate the last answer with ${model}`,
  mode: "Tool-calling mode",
  modeName: { native: "Native", text: "Text", auto: "Auto" } satisfies Record<Mode, string>,
  modeHint: {
    auto: "Native tool calls; an error if the model doesn't support them.",
    native: "The model's own tool calls.",
    text: "Tool calls written as text, for models without native support.",
  } satisfies Record<Mode, string>,
  cost: (tools: number, tokens: number) =>
    `${tools} ${tools === 1 ? "tool" : "tools"}, ${grouped(tokens)} tokens before your first message`,
  connect: "Connect a model",
};

export type PickerWords = typeof en;

const zh: PickerWords = {
  title: "模型与工具",
  search: "搜索模型和智能体",
  none: "没有结果",
  agents: "智能体",
  models: "模型",
  ofAgent: "智能体自己的模型",
  isDefault: "默认",
  lastUsed: "最近使用",
  context: (k) => `上下文 ${k}`,
  vision: "图片",
  audio: "音频",
  tools: "工具",
  noTools: "不支持原生工具",
  again: (model) => `用 ${model} 重新生成上一条回答`,
  mode: "工具调用方式",
  modeName: { native: "原生", text: "文本", auto: "自动" },
  modeHint: {
    auto: "使用原生工具调用；模型不支持时会提示。",
    native: "使用模型自带的工具调用。",
    text: "把工具调用写成文本，适合不支持原生调用的模型。",
  },
  cost: (tools, tokens) => `${tools} 个工具，第一条消息之前已有 ${grouped(tokens)} Token`,
  connect: "连接模型",
};

export const usePickerWords = lazyWords("picker", en, zh);
