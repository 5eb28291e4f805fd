// Texts of a form for a JSON Schema, loaded with it.

import { lazyWords } from "../../i18n/use.ts";
import type { FieldErrorCode } from "./draft.ts";

const en = {
  required: "Required",
  notSet: "Not set",
  yes: "Yes",
  no: "No",
  byDefault: (value: string) => `Default: ${value}`,
  addItem: "Add",
  removeItem: (n: number) => `Remove ${n}`,
  set: "Set",
  unset: "Unset",
  item: (n: number) => `${n}`,
  extraArguments: (names: string) => `Also sent, without a field: ${names}`,
  noParameters: "This tool takes no arguments.",
  fieldError: {
    missing: "This field is required.",
    not_a_number: "Must be a number.",
    not_whole: "Must be a whole number.",
    not_json: "Must be valid JSON.",
  } satisfies Record<FieldErrorCode, string>,
};

export type SchemaFormWords = typeof en;

const zh: SchemaFormWords = {
  required: "必填",
  notSet: "未设置",
  yes: "是",
  no: "否",
  byDefault: (value) => `默认：${value}`,
  addItem: "添加",
  removeItem: (n) => `移除第 ${n} 项`,
  set: "设置",
  unset: "取消设置",
  item: (n) => `第 ${n} 项`,
  extraArguments: (names) => `还会发送表单之外的字段：${names}`,
  noParameters: "此工具不需要参数。",
  fieldError: {
    missing: "此项必填。",
    not_a_number: "必须是数字。",
    not_whole: "必须是整数。",
    not_json: "必须是有效的 JSON。",
  },
};

export const useSchemaFormWords = lazyWords("schemaForm", en, zh);
