import type { Plugin } from "vite";

const MARKED = /node_modules\/marked\/lib\/marked\.esm\.js$/;

/**
 * Keeps only marked's lexer. Its HTML renderer is a fifth of it and unused here, but the one shared instance keeps it alive for
 * a bundler.
 */
export function lexerOnly(): Plugin {
  return {
    name: "throughline-lexer-only",
    apply: "build",
    transform(code, id) {
      if (!MARKED.test(id)) return undefined;
      const exported = code.slice(code.lastIndexOf("export{"));
      const local = (name: string): string => {
        const found = new RegExp(`([\\w$]+) as ${name}[,}]`).exec(exported)?.[1];
        if (found === undefined) this.error(`marked exports no ${name} any more: see build/lexer-only.ts`);
        return found;
      };
      const end = code.indexOf(`var ${local("Renderer")}=class`);
      const [lexer, tokenizer] = [local("Lexer"), local("Tokenizer")];
      if (end === -1 || code.indexOf(`${lexer}=class`) > end)
        this.error("marked has another order now: see build/lexer-only.ts");
      // Nor is the Markdown of 2004 (`pedantic`) needed.
      const reader = code
        .slice(0, end)
        .replaceAll("this.options.pedantic", "false")
        .replace(/,pedantic:[\w$]+\}/g, "}");
      return { code: `${reader}export{${lexer} as Lexer,${tokenizer} as Tokenizer};`, map: null };
    },
  };
}
