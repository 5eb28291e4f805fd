// Markdown that is read as it arrives, and where its links may lead.

export { fenceOf, isFenceClosed } from "./fence.ts";
export { GrowingMarkdown } from "./growing.ts";
export { read } from "./lexer.ts";
export { safeHref } from "./link.ts";
export { type Passage, Passages } from "./passages.ts";
