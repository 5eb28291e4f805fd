// The words of this dialog alone: they are fetched with it. As in `i18n`, what one language lacks does not compile.

import { useSyncExternalStore } from "react";
import { language } from "../preferences.ts";
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
  keyHint: "It is kept on the server, in a file for its owner only, and shown nowhere.",
  getKey: (title: string) => `Get a key from ${title}`,
  test: "Test and connect",
  asking: (whom: string) => `Asking ${whom}…`,
  choose: "Which model is to answer?",
  forget: "Forget the key",
  problem: {
    wrong_key: "This key is not accepted. Copy it once more, whole.",
    upstream_unreachable: "It cannot be reached. Is it running, and is the network there?",
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
  keyHint: "密钥保存在服务器上只有所有者可读的文件中，不会显示在任何地方。",
  getKey: (title) => `到 ${title} 获取密钥`,
  test: "测试并连接",
  asking: (whom) => `正在询问 ${whom}…`,
  choose: "由哪个模型回答？",
  forget: "删除密钥",
  problem: {
    wrong_key: "这个密钥未被接受。请完整地重新复制一次。",
    upstream_unreachable: "无法连接。它在运行吗？网络通吗？",
    no_such_model: "这个密钥没有该模型可用。请选择另一个。",
    no_quota: "密钥有效，但账户余额已用完。",
  },
};

export function useConnectWords(): ConnectWords {
  return useSyncExternalStore(language.subscribe, language.get) === "zh-CN" ? zh : en;
}
