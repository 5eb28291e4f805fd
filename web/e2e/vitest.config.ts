import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

// A real browser with the real server; each file has a server of its own.
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "node",
    // A limit for hanging tests, on a busy machine.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Parallel files, each with a browser and a server of its own: three keep two processors busy.
    maxWorkers: 3,
    // Retries once: a busy machine fails a test now and then, which is reported as flaky.
    retry: 1,
    // Each failure may take minutes: stops early if the page as a whole is broken.
    bail: 8,
    reporters: ["default", resolve(import.meta.dirname, "reporter.ts")],
  },
});
