// `node build.mjs streamdown`: builds the page of one peer to `dist/streamdown`. CLIENT is the path of our client's sources, which all use.

import { resolve } from "node:path";
import react from "@vitejs/plugin-react";
import { build } from "vite";

const [name] = process.argv.slice(2);
await build({
  configFile: false,
  logLevel: "error",
  base: "./",
  plugins: [react()],
  resolve: {
    alias: { "./view": resolve(`src/${name}.tsx`), "@throughline/client": resolve(process.env.CLIENT ?? "") },
  },
  build: { outDir: `dist/${name}`, emptyOutDir: true, target: "es2022" },
});
