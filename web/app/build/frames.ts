import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Plugin } from "vite";

const FOLDER = join(import.meta.dirname, "../frames");
const NAMES = ["preview.html", "diagram.html"];
const MERMAID = createRequire(import.meta.url).resolve("@mermaid-js/tiny/dist/mermaid.tiny.js");

/**
 * Documents for untrusted content, under `/frames/`. Each is self-contained: its origin is opaque, so it may load nothing, not even
 * a script of this server.
 */
export function frames(): Plugin {
  return {
    name: "throughline-frames",
    async generateBundle() {
      for (const name of NAMES)
        this.emitFile({ type: "asset", fileName: `frames/${name}`, source: await whole(name) });
    },
    configureServer(server) {
      server.middlewares.use("/frames", (request, response, next) => {
        const name = NAMES.find((one) => request.url?.startsWith(`/${one}`));
        if (name === undefined) return next();
        response.setHeader("content-type", "text/html; charset=utf-8");
        response.setHeader("content-security-policy", "sandbox allow-scripts");
        whole(name).then((text) => response.end(text), next);
      });
    },
  };
}

async function whole(name: string): Promise<string> {
  const text = await readFile(join(FOLDER, name), "utf8");
  if (!text.includes('<script src="mermaid">')) return text;
  // An inline script ends at its own closing tag only.
  const script = (await readFile(MERMAID, "utf8")).replace(/<(?=\/script|!--)/gi, "\\x3c");
  return text.replace('<script src="mermaid"></script>', () => `<script>${script}</script>`);
}
