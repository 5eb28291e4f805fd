// CSS by what it looks like: the highlighter's own grammar lists every property, tag and media feature there is, and is larger
// than all the other languages.

import type { HLJSApi, Language, Mode } from "highlight.js";

export default function css(hljs: HLJSApi): Language {
  const texts: Mode[] = [hljs.C_BLOCK_COMMENT_MODE, hljs.APOS_STRING_MODE, hljs.QUOTE_STRING_MODE];
  const number: Mode = { scope: "number", begin: /(?<![\w-])[-+]?(?:\d+\.?\d*|\.\d+)(?:%|[a-z]+)?/ };
  const colour: Mode = { scope: "number", begin: /#[0-9a-f]{3,8}\b/ };
  const called: Mode = { scope: "built_in", begin: /[\w-]+(?=\()/ };
  return {
    name: "CSS",
    case_insensitive: true,
    contains: [
      ...texts,
      { scope: "keyword", begin: /@[\w-]+/ },
      // A name, a colon, and the end of a declaration before any brace.
      { scope: "attribute", begin: /[\w-]+(?=\s*:[^{}]{0,400}[;}])/ },
      {
        begin: /:(?=[^{}]{0,400}[;}])/,
        end: /(?=[;{}])/,
        contains: [...texts, called, colour, number, { scope: "keyword", begin: /!important/ }],
      },
      { scope: "selector-class", begin: /[.#][a-z_-][\w-]*/ },
      { scope: "selector-pseudo", begin: /::?[a-z-]+/ },
      { scope: "selector-tag", begin: /\b[a-z][\w-]*(?=[^;{}]{0,400}\{)/ },
      number,
    ],
  };
}
