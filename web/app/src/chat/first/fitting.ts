// Chooses the suggestions that fit the model and its tools. Framework-free.

import type { ToolInfo } from "@throughline/client";
import type { Suggested } from "./words.ts";

export const SUGGESTIONS = 4;

/** Suggestions that the demo model has an answer for. */
const DEMO: readonly Suggested[] = ["weather", "calendar", "riddle", "yourself"];

/** Suggestions by the name of a tool, the most specific first. */
const BY_TOOL: readonly (readonly [RegExp, Suggested])[] = [
  [/(^|[._-])(web[._-]?search|search[._-]?web)/, "search"],
  [/^files?\.(list|read)/, "files"],
  [/^demo\.weather$/, "weather"],
  [/^demo\.calendar$/, "calendar"],
  [/^time\./, "days"],
  [/^live2d\./, "joke"],
];

/** Suggestions for every model. */
const ALWAYS: readonly Suggested[] = ["diagram", "formula", "clock", "trip"];

export function fitting(model: string, tools: readonly ToolInfo[]): Suggested[] {
  if (model === "demo") return [...DEMO];
  const offered = tools.filter((tool) => tool.offered);
  const used = BY_TOOL.filter(([pattern]) => offered.some(({ name }) => pattern.test(name)));
  // Unknown tools are matched by their descriptions.
  const isOther = offered.some(
    ({ name }) => !BY_TOOL.some(([pattern]) => pattern.test(name)) && !known(name),
  );
  const byTools = [...used.map(([, suggested]) => suggested), ...(isOther ? (["abilities"] as const) : [])];
  return [...byTools.slice(0, SUGGESTIONS - 1), ...ALWAYS].slice(0, SUGGESTIONS);
}

const known = (name: string): boolean => /^(files|time|demo|live2d)\./.test(name);
