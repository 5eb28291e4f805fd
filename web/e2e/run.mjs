// Runs a file of this folder that is TypeScript, which Node 20 does not read by itself: `node run.mjs bench/main.ts --quick`

import { resolve } from "node:path";
import { runnerImport } from "vite";

await runnerImport(resolve(import.meta.dirname, process.argv[2] ?? ""), { logLevel: "error" });
