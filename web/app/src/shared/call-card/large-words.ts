// Texts of the viewer for large values, loaded with it.

import { grouped } from "../../i18n/en.ts";
import { lazyWords } from "../../i18n/use.ts";

const en = {
  search: "Search in this value",
  tree: "Value as a tree",
  rows: (n: number) => `${grouped(n)} rows`,
  rowsFound: (n: number, all: number) => `${grouped(n)} of ${grouped(all)} rows`,
  parts: (n: number) => `${grouped(n)} lines`,
  hits: (n: number) => `${grouped(n)} found`,
};

export type LargeWords = typeof en;

const zh: LargeWords = {
  search: "在此值中搜索",
  tree: "树形显示的值",
  rows: (n) => `${grouped(n)} 行`,
  rowsFound: (n, all) => `${grouped(all)} 行中的 ${grouped(n)} 行`,
  parts: (n) => `${grouped(n)} 行`,
  hits: (n) => `找到 ${grouped(n)} 处`,
};

export const useLargeWords = lazyWords("large", en, zh);
