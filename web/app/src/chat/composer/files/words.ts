// Texts of files in the composer, loaded with the first one.

import { lazyWords } from "../../../i18n/use.ts";

const en = {
  files: "Files",
  refused: "Files that were not added",
  remove: (name: string) => `Remove ${name}`,
  reading: "Reading…",
  pages: (pages: string) => `Pages ${pages}`,
  partly: (pages: string) => `Only pages ${pages} fit`,
  dismiss: "Dismiss",
  binary: (name: string) =>
    `“${name}” isn't text, an image or a PDF. Save it as PDF, CSV or plain text, and add that.`,
  empty: (name: string) => `“${name}” is empty.`,
  tooLong: (name: string, max: string) =>
    `“${name}” has too much text: a file can have ${max}. Add only the part that matters.`,
  together: (name: string, max: string) =>
    `“${name}” doesn't fit: all files of a message can have ${max} of text. Remove another file, or send it in the next message.`,
  tooMany: (name: string, max: number) =>
    `“${name}” was left out: a message can have ${max} files. Send it in the next message.`,
  noText: (name: string) =>
    `No text was found in “${name}”: its pages are probably scanned. Add the pages as images, or run text recognition (OCR) on it first.`,
  failed: (name: string, why: string) => `“${name}” couldn't be added: ${why}`,
};

export type FileWords = typeof en;

const zh: FileWords = {
  files: "文件",
  refused: "未添加的文件",
  remove: (name) => `移除 ${name}`,
  reading: "正在读取…",
  pages: (pages) => `第 ${pages.replace(" of ", " 页，共 ")} 页`,
  partly: (pages) => `只放得下第 ${pages.replace(" of ", " 页，共 ")} 页`,
  dismiss: "知道了",
  binary: (name) => `“${name}”不是文本、图片或 PDF。请另存为 PDF、CSV 或纯文本后再添加。`,
  empty: (name) => `“${name}”是空文件。`,
  tooLong: (name, max) => `“${name}”的文字太多：单个文件最多 ${max}。请只添加需要的部分。`,
  together: (name, max) =>
    `“${name}”放不下：一条消息里所有文件的文字合计最多 ${max}。请移除其他文件，或放到下一条消息里发送。`,
  tooMany: (name, max) => `“${name}”未添加：一条消息最多 ${max} 个文件。请放到下一条消息里发送。`,
  noText: (name) =>
    `在“${name}”中没有找到文字，页面可能是扫描件。请把页面作为图片添加，或先进行文字识别（OCR）。`,
  failed: (name, why) => `无法添加“${name}”：${why}`,
};

export const useFileWords = lazyWords("files", en, zh);
