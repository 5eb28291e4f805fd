import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

// A real browser against the real server; each file has a server of its own.
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "node",
    // Longer than anything takes, on a machine that has other things to do.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Files at once, each with a browser and a server of its own: three keep two processors busy.
    maxWorkers: 3,
    // A busy machine fails one of some hundred once in a while; what passed only then is reported as flaky.
    retry: 1,
    // Each may wait for minutes: a page that is broken as a whole would fill the time of all checks.
    bail: 8,
    reporters: ["default", resolve(import.meta.dirname, "reporter.ts")],
  },
});
