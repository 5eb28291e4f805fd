// Texts of the commands in the composer, loaded with their list.

import { lazyWords } from "../../i18n/use.ts";
import type { Command } from "./commands.ts";

const en = {
  commands: "Commands and saved prompts",
  agents: "Agents for this message",
  does: {
    new: "Start a new conversation",
    retry: "Regenerate the last answer",
    model: "Choose a model",
    agent: "Choose who answers this message",
    system: "See and change the agent's system prompt",
    prompts: "Saved prompts: search, write, change",
    save: "Save the conversation as Markdown",
    export: "Save the conversation as one HTML file",
    connect: "Connect a model",
  } satisfies Record<Command, string>,
};

export type MenuWords = typeof en;

const zh: MenuWords = {
  commands: "命令和提示词",
  agents: "回答这条消息的智能体",
  does: {
    new: "新建对话",
    retry: "重新生成上一条回答",
    model: "选择模型",
    agent: "选择由谁回答这条消息",
    system: "查看或修改智能体的系统提示词",
    prompts: "提示词库：搜索、新建、修改",
    save: "将对话保存为 Markdown",
    export: "将对话保存为单个 HTML 文件",
    connect: "连接模型",
  },
};

export const useMenuWords = lazyWords("menu", en, zh);
