// Words of the sources of a text.

import { lazyWords } from "../../i18n/use.ts";

export interface CitationWords {
  sources: string;
}

export const useCitationWords = lazyWords("citations", { sources: "Sources" }, { sources: "来源" });
