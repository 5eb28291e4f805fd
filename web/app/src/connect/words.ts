// Texts of this dialog, loaded with it.

import { lazyWords } from "../i18n/use.ts";
import type { State } from "./state.ts";

const en = {
  answering: "Choose an agent",
  back: "Back",
  search: "Search providers",
  searchModels: "Filter models or enter a name",
  needsAdmin: "You need a key with the `admin` scope. The link printed by `throughline serve` gives you one.",
  state: {
    connected: "Connected",
    environment: "Key in the environment",
    here: "Found on this machine",
    away: "Not responding",
    key: "Needs a key",
  } satisfies Record<State, string>,
  key: "API key",
  keyIfAny: "API key (if required)",
  keyHint: "Stored on the server in a file only its owner can read, and never shown.",
  getKey: (title: string) => `Get a key from ${title}`,
  custom: "Custom endpoint",
  customNote: "Your own server or a gateway",
  address: "Base URL",
  addressForm: "http://… or https://…",
  addressHint: "The same as in other clients. Most end in /v1.",
  name: "Name",
  nameForm: "Letters, digits, -, _ and .",
  dialect: "API format",
  test: "Test and connect",
  asking: (whom: string) => `Testing ${whom}…`,
  choose: "Choose a model",
  nameModel: "This endpoint doesn't list its models. Enter a model name.",
  model: "Model name",
  forget: "Delete key",
  forgetOwn: "Delete endpoint",
  problem: {
    no_key: "An API key is required. Paste it above.",
    wrong_key: "The key was rejected. Copy the whole key and try again.",
    upstream_unreachable: "Can't connect. Check that it is running and reachable from the server.",
    not_from_here:
      "Custom endpoints can only be added on the server's own machine. Open this page there, or run this in its terminal:",
    not_found: "It is defined in the server's configuration. Remove it there.",
    no_such_model: "This key has no access to that model. Choose another one.",
    no_quota: "The key works, but the account has no credit left.",
  } as Readonly<Record<string, string>>,
};

export type ConnectWords = typeof en;

const zh: ConnectWords = {
  answering: "选择智能体",
  back: "返回",
  search: "搜索服务商",
  searchModels: "筛选模型，或输入名称",
  needsAdmin: "需要带 `admin` 权限的密钥。`throughline serve` 打印的链接可提供这样的密钥。",
  state: {
    connected: "已连接",
    environment: "密钥在环境变量中",
    here: "在本机发现",
    away: "无响应",
    key: "需要密钥",
  },
  key: "API 密钥",
  keyIfAny: "API 密钥（如需要）",
  keyHint: "密钥保存在服务器上仅所有者可读的文件中，不会在任何地方显示。",
  getKey: (title) => `到 ${title} 获取密钥`,
  custom: "自定义接口",
  customNote: "自己的服务器或网关",
  address: "接口地址",
  addressForm: "http://… 或 https://…",
  addressHint: "与其他客户端中填写的相同，多数以 /v1 结尾。",
  name: "名称",
  nameForm: "字母、数字、-、_ 和 .",
  dialect: "接口格式",
  test: "测试并连接",
  asking: (whom) => `正在测试 ${whom}…`,
  choose: "选择模型",
  nameModel: "此接口没有列出模型，请输入模型名称。",
  model: "模型名称",
  forget: "删除密钥",
  forgetOwn: "删除接口",
  problem: {
    no_key: "需要 API 密钥，请粘贴在上方。",
    wrong_key: "密钥被拒绝。请重新复制完整的密钥再试。",
    upstream_unreachable: "无法连接。请检查它是否在运行、服务器能否访问它。",
    not_from_here: "自定义接口只能在服务器所在的机器上添加。请在那台机器上打开本页，或在终端中运行：",
    not_found: "它在服务器的配置中定义，请在那里删除。",
    no_such_model: "此密钥无权使用该模型，请选择其他模型。",
    no_quota: "密钥有效，但账户余额已用完。",
  },
};

export const useConnectWords = lazyWords("connect", en, zh);
