import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { frames } from "./build/frames.ts";
import { lexerOnly } from "./build/lexer-only.ts";
import { compressed, emptied } from "./build/output.ts";
import { worker } from "./build/worker.ts";

/** `npm run dev` shows the page against a server that runs: `throughline serve`. */
const SERVER = process.env.THROUGHLINE_URL ?? "http://127.0.0.1:8787";

export default defineConfig({
  // Elements are made by a package of ours: whatever a view shows, nothing in it is invisible.
  plugins: [
    react({ jsxImportSource: "@throughline/visible" }),
    tailwindcss(),
    lexerOnly(),
    frames(),
    worker(),
    emptied(),
    compressed(),
  ],
  build: {
    outDir: "../dist",
    // What tells git to keep the folder and nothing in it stays; the rest is emptied below.
    emptyOutDir: false,
    // The page's policy allows no `data:` scripts or fonts, and a file of its own is cached for ever.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    manifest: "manifest.json",
    // It is the same in most releases, so a browser that was here before has it.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "react", test: /node_modules\/(react|react-dom|scheduler)\// },
            // The chat needs all of it, and other views some: in one file it is smaller than in ten.
            {
              name: "common",
              test: /web\/(client|json|visible)\/src\/|lucide-react\/dist\/esm\/(shared\/|\w+\.)|icons\/(check|copy|square|x|chevron-right|arrow-up|arrow-down|pause|play)\.|app\/src\/(session\/context|ui\/(copy|failed|icon-button|later|media)|chat\/(clock|context|card\/(body|elapsed|icon|look|output|section|value))|tester\/address)\./,
            },
          ],
        },
      },
    },
  },
  server: {
    // As if the page came from there: the server answers no others.
    proxy: { "/v1": { target: SERVER, changeOrigin: true, ws: true, headers: { origin: SERVER } } },
  },
});
