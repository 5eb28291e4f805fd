// Known properties of a model in one line, from the server's table of models and its configuration.

import type { UpstreamInfo } from "@throughline/client";
import { lazyWords } from "../i18n/use.ts";

export type ModelFacts = UpstreamInfo["model_facts"][string];

const en = {
  context: (size: string) => `${size} context`,
  vision: "images",
  tools: "tools",
  audio: "audio",
};

export type FactWords = typeof en;

const zh: FactWords = {
  context: (size) => `上下文 ${size}`,
  vision: "图像",
  tools: "工具",
  audio: "音频",
};

/** Number format of makers: 128K, 1M. */
const SIZE = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

const useFactWords = lazyWords("facts", en, zh);

/** Formats the line: context length and accepted inputs. Empty if nothing is known. */
export function useFactsLine(): (facts: ModelFacts | undefined) => string {
  const words = useFactWords();
  return (facts) => {
    if (facts === undefined) return "";
    const { context_tokens: context, vision, tools, audio } = facts;
    const parts = [
      context != null && words.context(SIZE.format(context)),
      vision && words.vision,
      tools && words.tools,
      audio && words.audio,
    ];
    return parts.filter(Boolean).join(" · ");
  };
}
