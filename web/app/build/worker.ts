import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Plugin, transformWithOxc } from "vite";

const SOURCE = join(import.meta.dirname, "../worker/worker.ts");
/** Files that are loaded on demand: most users never see a formula. */
const WHEN_NEEDED = /^assets\/(mathml|stix)/;

/** Builds the service worker, `/sw.js`, with the names of the files that it caches. */
export function worker(): Plugin {
  return {
    name: "throughline-worker",
    apply: "build",
    enforce: "post",
    generateBundle: {
      // Style sheets are known last.
      order: "post",
      async handler(_, bundle) {
        const names = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
        const files = names.filter((name) => !WHEN_NEEDED.test(name) && !name.endsWith(".map")).sort();
        const source = await readFile(SOURCE, "utf8");
        const { code } = await transformWithOxc(source, SOURCE);
        const hash = createHash("sha256").update(files.join("\n")).update(code).digest("hex");
        const values = `const FILES=${JSON.stringify(files.map((name) => `/${name}`))},RELEASE="${hash.slice(0, 12)}";`;
        // A classic worker has no exports.
        const script = `(()=>{${values}\n${code.replace(/^export \{\};?\s*$/m, "")}})();\n`;
        this.emitFile({ type: "asset", fileName: "sw.js", source: script });
      },
    },
  };
}
