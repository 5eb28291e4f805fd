// Texts of this view, loaded with it.

import { grouped } from "../i18n/en.ts";
import { lazyWords } from "../i18n/use.ts";
import type { Outlook } from "../shared/outlook.ts";

const en = {
  workbench: "Workbench",
  recorded: "Recorded stream",
  agent: "Agent",

  // Tools
  tools: "Discovered tools",
  offeredOf: (offered: number, all: number) => `${offered} of ${all} offered`,
  filter: "Filter by name, title or source",
  noTools: "No tools yet. Add sources of tools to the configuration; see `throughline tools`.",
  asksFirst: "Asks first",
  notOffered: "Not offered",
  inClient: "Runs in the page",
  toolsOf: (n: number) => `${n} ${n === 1 ? "tool" : "tools"}`,
  faultOf: (tool: string) => `${tool}: `,
  unknownToggles: (names: string) => `These switches match no tool: ${names}`,

  // Preview
  preview: "{{ tools }} preview",
  native: "Native",
  tokens: (n: number, isExact: boolean) => `${isExact ? "" : "≈ "}${grouped(n)} tokens`,
  costs: (source: string, tools: string, tokens: string) => `${source}: ${tools}, ${tokens}`,
  protocolOf: "How tools are described to the model",
  leftOut: (n: number) => `Left out (${n})`,
  unmatched: (names: string) => `These names in the prompt match no tool: ${names}`,
  nativeHint: "Definitions sent along with the messages",
  noneIncluded: "No tools included",

  // Run
  run: "Run a tool",
  chooseTool: "Choose a tool from the list.",
  noSuchTool: (tool: string) => `Tool ${tool} not found`,
  form: "Form",
  json: "JSON",
  argumentsAs: "Edit arguments as",
  runNow: "Run",
  asks: "This call needs your approval. Check its arguments.",
  approveAndRun: "Approve and run",
  stopped: "Stopped. Anything the tool has already done is not undone.",
  runsInClient:
    "This tool runs in a connected page or app, and only during a turn, so you can't run it from here.",
  seenByModel: "What a model would see",

  // Parse
  parse: "Parse text",
  reply: "Model reply",
  replyPlaceholder: "Paste a model reply here. Nothing in it will run.",
  example: "Insert an example",
  exampleBefore: "Let me check.",
  exampleAfter: "One moment.",
  protocol: "Protocol",
  anyProtocol: "Any",
  found: (calls: number, warnings: number) =>
    `${calls} ${calls === 1 ? "call" : "calls"} found · ${warnings} ${warnings === 1 ? "warning" : "warnings"}`,
  outlook: {
    runs: "Would run",
    asks: "Would ask",
    denied: "Would be denied",
    not_started: "Would not start",
    arriving: "Arriving",
  } satisfies Record<Outlook, string>,
  atLine: (line: number, column: number) => `Line ${line}, column ${column}`,
  leaked: "Markup of another model",
  unnamed: "Unnamed block",
  tryCall: "Try",
  tryCallOf: (tool: string) => `Try ${tool} with these arguments`,
  seen: "What the user would see",

  // Play
  play: "Play as a stream",
  pause: "Pause",
  resume: "Resume",
  stepOnce: "Next chunk",
  endPlay: "Back to text",
  piece: "Chunk size",
  characters: (n: number) => `${n} ${n === 1 ? "character" : "characters"}`,
  speed: "Speed",
  perSecond: (n: number) => `${n} chunks/s`,
  arrived: (n: number, all: number) => `${n} of ${all} characters`,
  arriving: "Text as it arrives",
};

export type TesterWords = typeof en;

const zh: TesterWords = {
  workbench: "工作台",
  recorded: "录制的流",
  agent: "智能体",

  tools: "已发现的工具",
  offeredOf: (offered, all) => `提供 ${offered} / ${all} 个`,
  filter: "按名称、标题或来源筛选",
  noTools: "还没有工具。请在配置中添加工具来源，参见 `throughline tools`。",
  asksFirst: "先询问",
  notOffered: "不提供",
  inClient: "在页面中运行",
  toolsOf: (n) => `${n} 个工具`,
  faultOf: (tool) => `${tool}：`,
  unknownToggles: (names) => `这些开关没有匹配的工具：${names}`,

  preview: "{{ tools }} 预览",
  native: "原生",
  tokens: (n, isExact) => `${isExact ? "" : "≈ "}${grouped(n)} Token`,
  costs: (source, tools, tokens) => `${source}：${tools}，${tokens}`,
  protocolOf: "向模型描述工具的方式",
  leftOut: (n) => `未包含（${n}）`,
  unmatched: (names) => `提示词中的这些名称没有匹配的工具：${names}`,
  nativeHint: "随消息一起发送的定义",
  noneIncluded: "不包含任何工具",

  run: "运行工具",
  chooseTool: "请从列表中选择一个工具。",
  noSuchTool: (tool) => `找不到工具 ${tool}`,
  form: "表单",
  json: "JSON",
  argumentsAs: "参数的编辑方式",
  runNow: "运行",
  asks: "这个调用需要审批，请检查参数。",
  approveAndRun: "批准并运行",
  stopped: "已停止。工具已完成的操作不会撤销。",
  runsInClient: "此工具只能在对话的一轮中，由已连接的页面或应用运行，无法在这里运行。",
  seenByModel: "模型看到的内容",

  parse: "解析文本",
  reply: "模型回复",
  replyPlaceholder: "在此粘贴模型回复，其中的调用不会运行。",
  example: "插入示例",
  exampleBefore: "我来看看。",
  exampleAfter: "请稍等。",
  protocol: "协议",
  anyProtocol: "不限",
  found: (calls, warnings) => `找到 ${calls} 个调用 · ${warnings} 条警告`,
  outlook: {
    runs: "会运行",
    asks: "会先询问",
    denied: "会被拒绝",
    not_started: "不会开始",
    arriving: "接收中",
  },
  atLine: (line, column) => `第 ${line} 行第 ${column} 列`,
  leaked: "其他模型的标记",
  unnamed: "未命名的块",
  tryCall: "试用",
  tryCallOf: (tool) => `用这些参数试用 ${tool}`,
  seen: "用户看到的内容",

  play: "按流播放",
  pause: "暂停",
  resume: "继续",
  stepOnce: "下一块",
  endPlay: "返回文本",
  piece: "分块大小",
  characters: (n) => `${n} 个字符`,
  speed: "速度",
  perSecond: (n) => `每秒 ${n} 块`,
  arrived: (n, all) => `${n} / ${all} 个字符`,
  arriving: "正在接收的文本",
};

export const useTesterWords = lazyWords("tester", en, zh);
