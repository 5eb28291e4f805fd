// Texts of the prompt library, loaded with it.

import { lazyWords } from "../../i18n/use.ts";

const en = {
  title: "Saved prompts",
  search: "Search prompts",
  none: "Prompts that you save are here, and in the menu that / opens.",
  noMatch: "No prompt matches.",
  create: "New prompt",
  edit: (name: string) => `Edit “${name}”`,
  use: (name: string) => `Insert “${name}”`,
  back: "Back to the list",
  name: "Name",
  text: "Prompt",
  hint: "Write {{topic}} where something should be asked for each time.",
  save: "Save",
  remove: "Delete",
  removeSure: (name: string) => `Delete “${name}” for good`,
  fill: (name: string) => `Fill in “${name}”`,
  insert: "Insert",
};

export type PromptWords = typeof en;

const zh: PromptWords = {
  title: "提示词库",
  search: "搜索提示词",
  none: "保存的提示词会显示在这里，也会出现在输入 / 打开的菜单中。",
  noMatch: "没有匹配的提示词。",
  create: "新建提示词",
  edit: (name) => `编辑“${name}”`,
  use: (name) => `插入“${name}”`,
  back: "返回列表",
  name: "名称",
  text: "提示词",
  hint: "每次使用时才填写的内容，请写成 {{主题}} 这样的占位符。",
  save: "保存",
  remove: "删除",
  removeSure: (name) => `确认删除“${name}”`,
  fill: (name) => `填写“${name}”`,
  insert: "插入",
};

export const usePromptWords = lazyWords("prompts", en, zh);
