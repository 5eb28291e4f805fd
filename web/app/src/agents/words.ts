// The words of this view, fetched with it. The names and descriptions of the fields come from the server.

import { lazyWords } from "../i18n/use.ts";

const en = {
  // The list
  new: "New agent",
  name: "Name",
  nameHint: "Letters, digits, -, _ and .",
  create: "Create",
  duplicate: "Duplicate",
  duplicateToEdit: "Duplicate to edit",
  ofFile: "Configuration file",
  byDefault: "Default",
  noTools: "No tools",
  readOnly: "This agent is defined in the configuration file. You can view and duplicate it here.",
  chatWith: "Chat with this agent",
  all: "All agents",

  // Saving
  unsaved: "Unsaved changes",
  save: "Save",
  discard: "Discard",
  saved: "Saved. Applies to new turns.",
  overwrite: "Overwrite with mine",
  useSaved: "Use the saved version",
  leaveTitle: "Leave without saving?",
  stay: "Keep editing",
  noKey: "This upstream has no key.",

  // Tools
  switchOf: (name: string) => `Switch for ${name}`,
  asDefault: "Default",
  units: {} as Readonly<Record<string, string>>,
  on: "On",
  off: "Off",
  allNow: "All current tools",
  others: "Groups and other names",
  othersHint:
    "files covers files.read and the rest of that group, including tools added later. The longest name wins.",
  addSwitch: "Add a switch",
  idle: "Matches no tool now",
  removeOf: (name: string) => `Remove ${name}`,

  // Rules
  rules: "Rules",
  rulesHint:
    "The first matching rule decides; every field you fill in must match. If none matches, tools that change nothing run and all others ask first.",
  addRule: "Add a rule",
  rule: (n: number) => `Rule ${n}`,
  up: (n: number) => `Move rule ${n} up`,
  down: (n: number) => `Move rule ${n} down`,
  decides: "Matched",
  decide: { allow: "Allow", ask: "Ask", deny: "Deny" },
  tool: "Tools",
  source: "Source",
  any: "Any",
  effects: "Effect",
  test: "Argument condition",
  argument: "Argument",
  stray: "Each condition needs its own argument.",
  how: {
    equals: "equals",
    one_of: "is one of",
    glob: "matches",
    starts_with: "starts with",
    under: "is a path under",
    host: "has host",
  },
  value: "Value",
  reason: "Reason (sent to the model)",
  example: "Example call",
  exampleHint: "See what the rules above would do with this call. Nothing runs.",
  chooseTool: "Choose a tool",

  // Preview
  preview: "What the model sees",
  nativeDefinitions: "Tool definitions, sent separately",
  stale: "Showing the last valid version:",
};

export type AgentWords = typeof en;

const zh: AgentWords = {
  new: "新建智能体",
  name: "名称",
  nameHint: "字母、数字、-、_ 和 .",
  create: "创建",
  duplicate: "创建副本",
  duplicateToEdit: "创建副本并编辑",
  ofFile: "配置文件",
  byDefault: "默认",
  noTools: "无工具",
  readOnly: "此智能体在配置文件中定义，这里只能查看和创建副本。",
  chatWith: "与此智能体对话",
  all: "全部智能体",

  unsaved: "有未保存的更改",
  save: "保存",
  discard: "放弃更改",
  saved: "已保存，对新的轮次生效。",
  overwrite: "用我的版本覆盖",
  useSaved: "使用已保存的版本",
  leaveTitle: "不保存就离开？",
  stay: "继续编辑",
  noKey: "此上游没有密钥。",

  switchOf: (name) => `${name} 的开关`,
  asDefault: "默认",
  units: { bytes: "字节", tokens: "Token" },
  on: "开",
  off: "关",
  allNow: "当前全部工具",
  others: "组和其他名称",
  othersHint: "files 控制 files.read 及该组的其他工具，包括以后新增的；名称越长越优先。",
  addSwitch: "添加开关",
  idle: "目前没有匹配的工具",
  removeOf: (name) => `移除 ${name}`,

  rules: "规则",
  rulesHint:
    "由第一条匹配的规则决定；填写的各项都要匹配。没有匹配的规则时，不更改任何内容的工具直接运行，其他工具先询问。",
  addRule: "添加规则",
  rule: (n) => `规则 ${n}`,
  up: (n) => `上移规则 ${n}`,
  down: (n) => `下移规则 ${n}`,
  decides: "命中",
  decide: { allow: "允许", ask: "询问", deny: "拒绝" },
  tool: "工具",
  source: "来源",
  any: "不限",
  effects: "影响",
  test: "参数条件",
  argument: "参数",
  stray: "每个条件都要有各自的参数。",
  how: {
    equals: "等于",
    one_of: "是其中之一",
    glob: "匹配",
    starts_with: "开头为",
    under: "路径位于",
    host: "主机为",
  },
  value: "值",
  reason: "原因（会发给模型）",
  example: "示例调用",
  exampleHint: "查看上面的规则会如何处理这个调用，不会实际运行。",
  chooseTool: "选择工具",

  preview: "模型看到的内容",
  nativeDefinitions: "单独发送的工具定义",
  stale: "显示最近一次有效的版本：",
};

export const useAgentWords = lazyWords(en, zh);
