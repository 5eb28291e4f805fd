// Incremental Markdown parser, and safe link targets.

export { directionOf } from "./direction.ts";
export { fenceOf, isFenceClosed } from "./fence.ts";
export { GrowingMarkdown } from "./growing.ts";
export { read } from "./lexer.ts";
export { safeHref } from "./link.ts";
export type { OpenEnd } from "./open-end.ts";
export { type Passage, Passages } from "./passages.ts";
export { csvOf, plainText } from "./plain.ts";
export type { AlertKind, Details, Footnote, FootnoteRef, Maths, OwnToken, Quote, Script } from "./tokens.ts";
