// Texts of users and their keys, loaded with their panel.

import { count, grouped } from "../i18n/en.ts";
import { lazyWords } from "../i18n/use.ts";
import type { Limit } from "./model/limits.ts";

const en = {
  people: "People",
  peopleHow:
    "Everybody who may use this server. Conversations, files, agents and limits belong to one person each; admins do not see those of others.",
  add: "Add a person",
  addNow: "Add",
  name: "Name",
  nameHint: "1 to 64 letters, digits, -, _, ., @ or +",
  isAdmin: "Admin",
  isYou: "You",
  isRemoved: "Removed",
  use: (turns: number, tokens: number) => `${count(turns, "turn")}, ${count(tokens, "token")}`,
  today: (use: string) => `Today ${use}`,
  month: (use: string) => `this month ${use}`,
  manage: "Manage",
  manageOf: (name: string) => `Manage ${name}`,
  noPeople: "Nobody yet",

  rights: "Rights",
  mayAdminister: "Administers the server: people, keys and connected models",
  firstStays: "The first person of a server stays an admin.",

  limits: "Limits of use",
  limitsHow: "Empty: no limit. Days and months are those of UTC. A turn that is running may finish.",
  limitsOf: (name: string) => `Limits of ${name}`,
  limit: {
    turns_per_day_max: "Turns a day",
    turns_per_month_max: "Turns a month",
    tokens_per_day_max: "Tokens a day",
    tokens_per_month_max: "Tokens a month",
  } satisfies Record<Limit, string>,
  ofLimit: (limit: Limit, n: number): string =>
    ({
      turns_per_day_max: `${count(n, "turn")} a day`,
      turns_per_month_max: `${count(n, "turn")} a month`,
      tokens_per_day_max: `${count(n, "token")} a day`,
      tokens_per_month_max: `${count(n, "token")} a month`,
    })[limit],
  limited: (limits: string) => `Limited to ${limits}`,
  wholeNumber: "A whole number, or nothing",
  save: "Save",
  saveLimits: "Save limits",
  saved: "Saved",

  keysOf: (name: string) => `Keys of ${name}`,
  newKey: "New key",
  keyName: "Name of the key",
  keyNameHint: "For example: laptop",
  may: "The key may",
  days: "Expires after days",
  daysHint: "Empty: never",
  models: "Agents and models",
  modelsHint: "One per line: an agent, upstream/model, or upstream/*. Empty: all.",
  createKey: "Create key",
  shownOnce: "Copy this key now. It is shown only once.",
  copyKey: "Copy key",
  done: "Done",
  change: "Limits and models",
  changeOf: (name: string) => `Limits and models of key ${name}`,
  onlyModels: (models: string) => `Only ${models}`,

  remove: "Remove",
  removeOf: (name: string) => `Remove ${name}`,
  removal: (name: string) => `Remove ${name}?`,
  removalAlways: "All keys are revoked, and running turns are cancelled.",
  keepData: "Keep the data",
  keepDataHow: "Conversations, files and agents stay. Add the same name again, and they are back.",
  deleteData: "Delete the data",
  deleteDataHow:
    "Conversations, files, agents, remembered answers and usage are deleted. This cannot be undone.",
  confirmKeep: (name: string) => `Remove ${name}`,
  confirmDelete: (name: string) => `Remove ${name} and delete the data`,
  wasRemoved: (name: string, keys: number) => `${name} was removed; ${count(keys, "key")} revoked.`,
  wasDeleted: (name: string, conversations: number, files: number) =>
    `${name} was removed, with ${count(conversations, "conversation")} and ${count(files, "file")}.`,
  bringBack: "Bring back",
  bringBackOf: (name: string) => `Bring ${name} back`,
};

export type PeopleWords = typeof en;

const zh: PeopleWords = {
  people: "用户",
  peopleHow: "可以使用此服务器的所有人。对话、文件、智能体和限额各归各人；管理员也看不到别人的内容。",
  add: "添加用户",
  addNow: "添加",
  name: "用户名",
  nameHint: "1 到 64 个字母、数字、-、_、.、@ 或 +",
  isAdmin: "管理员",
  isYou: "你",
  isRemoved: "已移除",
  use: (turns, tokens) => `${grouped(turns)} 轮、${grouped(tokens)} Token`,
  today: (use) => `今日 ${use}`,
  month: (use) => `本月 ${use}`,
  manage: "管理",
  manageOf: (name) => `管理 ${name}`,
  noPeople: "还没有用户",

  rights: "权限",
  mayAdminister: "管理服务器：用户、密钥和已连接的模型",
  firstStays: "服务器的第一位用户始终是管理员。",

  limits: "用量限额",
  limitsHow: "留空则不限。日和月按 UTC 计算；正在运行的轮次会执行完。",
  limitsOf: (name) => `${name} 的限额`,
  limit: {
    turns_per_day_max: "每日轮数",
    turns_per_month_max: "每月轮数",
    tokens_per_day_max: "每日 Token",
    tokens_per_month_max: "每月 Token",
  },
  ofLimit: (limit, n) =>
    ({
      turns_per_day_max: `每日 ${grouped(n)} 轮`,
      turns_per_month_max: `每月 ${grouped(n)} 轮`,
      tokens_per_day_max: `每日 ${grouped(n)} Token`,
      tokens_per_month_max: `每月 ${grouped(n)} Token`,
    })[limit],
  limited: (limits) => `限额：${limits}`,
  wholeNumber: "请填整数，或留空",
  save: "保存",
  saveLimits: "保存限额",
  saved: "已保存",

  keysOf: (name) => `${name} 的密钥`,
  newKey: "新建密钥",
  keyName: "密钥名称",
  keyNameHint: "例如：笔记本电脑",
  may: "密钥权限",
  days: "有效天数",
  daysHint: "留空：永不过期",
  models: "智能体和模型",
  modelsHint: "每行一个：智能体、上游/模型，或 上游/*。留空：全部。",
  createKey: "创建密钥",
  shownOnce: "请立即复制。密钥只显示这一次。",
  copyKey: "复制密钥",
  done: "完成",
  change: "限额和模型",
  changeOf: (name) => `密钥 ${name} 的限额和模型`,
  onlyModels: (models) => `仅限 ${models}`,

  remove: "移除",
  removeOf: (name) => `移除 ${name}`,
  removal: (name) => `移除 ${name}？`,
  removalAlways: "所有密钥会被吊销，正在运行的轮次会被取消。",
  keepData: "保留数据",
  keepDataHow: "对话、文件和智能体都保留；再次添加同名用户即可恢复。",
  deleteData: "删除数据",
  deleteDataHow: "对话、文件、智能体、已记住的答复和用量都会删除，无法撤销。",
  confirmKeep: (name) => `移除 ${name}`,
  confirmDelete: (name) => `移除 ${name} 并删除数据`,
  wasRemoved: (name, keys) => `已移除 ${name}，吊销了 ${keys} 个密钥。`,
  wasDeleted: (name, conversations, files) =>
    `已移除 ${name}，并删除了 ${grouped(conversations)} 个对话和 ${grouped(files)} 个文件。`,
  bringBack: "恢复",
  bringBackOf: (name) => `恢复 ${name}`,
};

export const usePeopleWords = lazyWords("people", en, zh);
