import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { frames } from "./build/frames.ts";
import { lexerOnly } from "./build/lexer-only.ts";
import { compressed, emptied } from "./build/output.ts";
import { worker } from "./build/worker.ts";

/** `npm run dev` shows the page against a running server: `throughline serve`. */
const SERVER = process.env.THROUGHLINE_URL ?? "http://127.0.0.1:8787";

export default defineConfig({
  // Elements are created by our own package, which makes invisible characters visible in every view.
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
    // Vite keeps the output folder for the file that git tracks; the rest is deleted below.
    emptyOutDir: false,
    // The page's policy allows no `data:` scripts or fonts, and a separate file is cached permanently.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    manifest: "manifest.json",
    // React rarely changes between releases, so returning browsers have it in their cache.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "react", test: /node_modules\/(react|react-dom|scheduler)\// },
            // The chat needs all of these icons, and other views some: one file is smaller than ten.
            {
              name: "common",
              test: /web\/(client|json|visible)\/src\/|lucide-react\/dist\/esm\/(shared\/|\w+\.)|icons\/(check|copy|square|x|chevron-right|arrow-up|arrow-down|pause|play)\.|app\/src\/(session\/context|ui\/(copy|failed|icon-button|later|media)|chat\/(context|card\/body)|shared\/(clock|format|tester-address|call-card\/(elapsed|icon|output|section|tone|value)))\./,
            },
          ],
        },
      },
    },
  },
  server: {
    // With the server's own origin: it refuses others.
    proxy: { "/v1": { target: SERVER, changeOrigin: true, ws: true, headers: { origin: SERVER } } },
  },
});
