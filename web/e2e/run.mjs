// Runs a TypeScript file of this folder, which Node 20 cannot do by itself: `node run.mjs bench/main.ts --quick`

import { resolve } from "node:path";
import { runnerImport } from "vite";

await runnerImport(resolve(import.meta.dirname, process.argv[2] ?? ""), { logLevel: "error" });
