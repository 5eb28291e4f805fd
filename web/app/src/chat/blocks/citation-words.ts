// Texts of citations.

import { lazyWords } from "../../i18n/use.ts";

export interface CitationWords {
  sources: string;
}

export const useCitationWords = lazyWords("citations", { sources: "Sources" }, { sources: "来源" });
