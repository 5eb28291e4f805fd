// The words of this dialog alone: they are fetched with it. As in `i18n`, what one language lacks does not compile.

import { lazyWords } from "../i18n/use.ts";
import type { State } from "./state.ts";

const en = {
  answering: "Who answers",
  back: "Back",
  search: "Search providers",
  searchModels: "Filter models, or type a name",
  needsAdmin: "This takes a key with the scope `admin`: the link of `throughline serve` gives one.",
  state: {
    connected: "connected",
    environment: "key in the environment",
    here: "found on this machine",
    away: "does not answer",
    key: "needs a key",
  } satisfies Record<State, string>,
  key: "API key",
  keyIfAny: "API key, if it takes one",
  keyHint: "It is kept on the server, in a file for its owner only, and shown nowhere.",
  getKey: (title: string) => `Get a key from ${title}`,
  own: "Another address",
  ownNote: "a server of your own, a gateway",
  address: "Address",
  addressForm: "http://… or https://…",
  addressHint: "As other clients take it. Most end in /v1.",
  name: "Name",
  nameForm: "Letters, digits, - _ .",
  dialect: "API",
  test: "Test and connect",
  asking: (whom: string) => `Asking ${whom}…`,
  choose: "Which model is to answer?",
  nameModel: "It does not say which models it has. Which one is to answer?",
  model: "Name of the model",
  forget: "Forget the key",
  forgetOwn: "Forget this address",
  problem: {
    no_key: "It wants a key. Paste it above.",
    wrong_key: "This key is not accepted. Copy it once more, whole.",
    upstream_unreachable: "It cannot be reached. Is it running, and is the network there?",
    not_from_here:
      "An address of your own is named on the server's own machine: open the page there, or run this in its terminal:",
    not_found: "It is in the configuration of the server, and is taken out there.",
    no_such_model: "There is no such model for this key. Choose another one.",
    no_quota: "The key is good, but nothing is left on its account.",
  } as Readonly<Record<string, string>>,
};

export type ConnectWords = typeof en;

const zh: ConnectWords = {
  answering: "由谁回答",
  back: "返回",
  search: "搜索服务商",
  searchModels: "筛选模型，或输入名称",
  needsAdmin: "这需要带 `admin` 权限的密钥：`throughline serve` 打印的链接会给出。",
  state: {
    connected: "已连接",
    environment: "密钥在环境变量中",
    here: "在本机找到",
    away: "没有回应",
    key: "需要密钥",
  },
  key: "API 密钥",
  keyIfAny: "API 密钥（如果需要）",
  keyHint: "密钥保存在服务器上只有所有者可读的文件中，不会显示在任何地方。",
  getKey: (title) => `到 ${title} 获取密钥`,
  own: "其他地址",
  ownNote: "自己的服务器、网关",
  address: "地址",
  addressForm: "http://… 或 https://…",
  addressHint: "与填给其他客户端的相同，多数以 /v1 结尾。",
  name: "名称",
  nameForm: "字母、数字、- _ .",
  dialect: "接口",
  test: "测试并连接",
  asking: (whom) => `正在询问 ${whom}…`,
  choose: "由哪个模型回答？",
  nameModel: "它没有列出模型。由哪个模型回答？",
  model: "模型名称",
  forget: "删除密钥",
  forgetOwn: "删除这个地址",
  problem: {
    no_key: "它需要密钥，请粘贴在上面。",
    wrong_key: "这个密钥未被接受。请完整地重新复制一次。",
    upstream_unreachable: "无法连接。它在运行吗？网络通吗？",
    not_from_here: "自己的地址只能在服务器所在的机器上填写：请在那里打开本页，或在它的终端运行：",
    not_found: "它写在服务器的配置中，需在那里删除。",
    no_such_model: "这个密钥没有该模型可用。请选择另一个。",
    no_quota: "密钥有效，但账户余额已用完。",
  },
};

export const useConnectWords = lazyWords(en, zh);
