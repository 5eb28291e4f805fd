// The words of this view alone: they are fetched with it. As in `i18n`, what one language lacks does not compile. What each
// field is called and does, the server says.

import { lazyWords } from "../i18n/use.ts";

const en = {
  // The list
  new: "New agent",
  name: "Name",
  nameHint: "Letters, digits, - _ and .",
  make: "Make it",
  duplicate: "Duplicate",
  duplicateToEdit: "Duplicate to edit",
  ofFile: "of the file",
  byDefault: "default",
  noTools: "no tools",
  readOnly: "This agent is written in the configuration file. It can be looked at and copied here.",
  chatWith: "Chat with it",
  all: "All agents",

  // Saving
  unsaved: "Not saved yet",
  save: "Save",
  discard: "Discard",
  saved: "Saved. Turns that begin from now on go by it.",
  overwrite: "Save mine over it",
  takeTheirs: "Take what is there",
  leaveTitle: "Leave without saving?",
  stay: "Stay",
  noKey: "Its upstream has no key.",

  // Tools
  switchOf: (name: string) => `Switch of ${name}`,
  asDefault: "as default",
  units: {} as Readonly<Record<string, string>>,
  on: "on",
  off: "off",
  allNow: "all, now",
  others: "Groups and other names",
  othersHint: "files switches files.read and all others of that group, later ones too; the longer name wins.",
  addSwitch: "Add a switch",
  idle: "switches nothing now",
  removeOf: (name: string) => `Remove ${name}`,

  // Rules
  rules: "Rules",
  rulesHint:
    "The first that fits decides; all that is filled in must fit. Without one, what only reads runs and the rest asks.",
  addRule: "Add a rule",
  rule: (n: number) => `Rule ${n}`,
  up: (n: number) => `Move rule ${n} up`,
  down: (n: number) => `Move rule ${n} down`,
  decides: "decides",
  decide: { allow: "Run it", ask: "Ask me", deny: "Deny it" },
  tool: "Tools",
  source: "Source",
  any: "any",
  effects: "Only if it",
  test: "Test of an argument",
  argument: "Argument",
  stray: "Each test needs an argument of its own.",
  how: {
    equals: "equals",
    one_of: "is one of",
    glob: "is like",
    starts_with: "begins with",
    under: "is a path under",
    host: "is at host",
  },
  value: "Value",
  reason: "Reason, told to the model",
  example: "An example",
  exampleHint: "What would become of this call under the rules above. Nothing runs.",
  chooseTool: "Choose a tool",

  // Preview
  preview: "What the model is told",
  beside: "beside it, as definitions",
  stale: "This is the last that was valid:",
};

export type AgentWords = typeof en;

const zh: AgentWords = {
  new: "新建智能体",
  name: "名称",
  nameHint: "字母、数字、- _ 和 .",
  make: "创建",
  duplicate: "复制",
  duplicateToEdit: "复制后编辑",
  ofFile: "来自配置文件",
  byDefault: "默认",
  noTools: "无工具",
  readOnly: "这个智能体写在配置文件里，在这里只能查看和复制。",
  chatWith: "用它聊天",
  all: "全部智能体",

  unsaved: "尚未保存",
  save: "保存",
  discard: "放弃",
  saved: "已保存，从现在开始的对话轮次生效。",
  overwrite: "用我的覆盖",
  takeTheirs: "采用现有的",
  leaveTitle: "不保存就离开？",
  stay: "留下",
  noKey: "它的上游没有密钥。",

  switchOf: (name) => `${name} 的开关`,
  asDefault: "按默认",
  units: { bytes: "字节", tokens: "词元" },
  on: "开",
  off: "关",
  allNow: "现有全部",
  others: "组和其他名称",
  othersHint: "files 控制 files.read 和该组其他工具，包括以后新增的；名称越长越优先。",
  addSwitch: "添加开关",
  idle: "目前不对应任何工具",
  removeOf: (name) => `移除 ${name}`,

  rules: "规则",
  rulesHint: "第一条符合的规则决定；填写的各项都要符合。没有规则时，只读的直接运行，其余先询问。",
  addRule: "添加规则",
  rule: (n) => `规则 ${n}`,
  up: (n) => `上移规则 ${n}`,
  down: (n) => `下移规则 ${n}`,
  decides: "由它决定",
  decide: { allow: "运行", ask: "询问我", deny: "拒绝" },
  tool: "工具",
  source: "来源",
  any: "不限",
  effects: "仅当它",
  test: "参数条件",
  argument: "参数",
  stray: "每个条件都要有各自的参数。",
  how: {
    equals: "等于",
    one_of: "是其中之一",
    glob: "匹配",
    starts_with: "开头是",
    under: "路径位于",
    host: "主机是",
  },
  value: "值",
  reason: "理由（会告诉模型）",
  example: "示例",
  exampleHint: "按上面的规则，这个调用会怎样。不会真的运行。",
  chooseTool: "选择工具",

  preview: "模型会看到的内容",
  beside: "另附定义",
  stale: "这是最近一次有效的内容：",
};

export const useAgentWords = lazyWords(en, zh);
